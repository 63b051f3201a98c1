/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CONFIG_FIXTURE_H
#define TESTS_UNIT_CONFIG_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "broker/config/config.h"
#include "broker/config/config_reader.h"
#include "providers/impl.h"
#include "tests/support/facts.h"

enum { PATH_BYTES = 512, REMOVE_FDS = 8 };

/* Gives each test its own home, and a registry with one provider that has two keys. */
struct fixture {
	char home[PATH_BYTES];
	char file[PATH_BYTES]; // where the configuration belongs
	char home_entry[PATH_BYTES + 8];
	const char *environment[5];
	struct registry *registry;
	struct config config;
	struct error err;
};

/* ---- a provider that only has keys ---- */

static const struct setting_key image_keys[] = {
	{.name = "image", .type = SETTING_TEXT},
	{.name = "keep", .type = SETTING_BOOL, .fallback = "false"},
};

static inline void destroy_provider(struct provider *provider)
{
	free(provider);
}

static inline bool local_is_isolated(const struct settings *settings)
{
	return false;
}

static const struct provider_impl local_impl = {.name = "local",
	.runs_here = true,
	.destroy = destroy_provider,
	.is_isolated = local_is_isolated};
static const struct provider_impl fake_impl = {.name = "fake",
	.keys = image_keys,
	.key_count = ARRAY_LENGTH(image_keys),
	.destroy = destroy_provider};

static inline void add_provider(struct registry *registry, const struct provider_impl *impl)
{
	struct provider *provider = mem_alloc_zero(sizeof(*provider));
	provider->impl = impl;
	struct error err;
	assert_true(registry_add(registry, provider, &err));
}

/* ---- the fixture ---- */

static inline void make_folder(const char *home, const char *name)
{
	char path[PATH_BYTES];
	snprintf(path, sizeof(path), "%s/%s", home, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static inline int setup(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	*state = fixture;
	snprintf(fixture->home, sizeof(fixture->home), "/tmp/acp-broker-test-XXXXXX");
	assert_non_null(mkdtemp(fixture->home));
	make_folder(fixture->home, ".config");
	make_folder(fixture->home, ".config/acp-broker");
	make_folder(fixture->home, "work");
	snprintf(fixture->file, sizeof(fixture->file), "%.400s/.config/acp-broker/config",
		fixture->home);
	snprintf(fixture->home_entry, sizeof(fixture->home_entry), "HOME=%s", fixture->home);
	fixture->environment[0] = "PATH=/usr/bin:/bin";
	fixture->environment[1] = fixture->home_entry;
	fixture->environment[2] = "API_KEY=hunter2";
	fixture->registry = registry_create();
	add_provider(fixture->registry, &local_impl);
	add_provider(fixture->registry, &fake_impl);
	return 0;
}

static inline int remove_entry(
	const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

static inline int teardown(void **state)
{
	struct fixture *fixture = *state;
	registry_destroy(fixture->registry);
	nftw(fixture->home, remove_entry, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
	free(fixture);
	return 0;
}

static inline void write_bytes(const char *path, const char *bytes, size_t len)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static inline void write_config(const struct fixture *fixture, const char *text)
{
	write_bytes(fixture->file, text, strlen(text));
}

static inline bool load(struct fixture *fixture, const struct options *options)
{
	return config_load(
		&fixture->config, options, fixture->registry, fixture->environment, &fixture->err);
}

static inline void assert_loads(struct fixture *fixture, const struct options *options)
{
	if (!load(fixture, options)) {
		fail_msg("%s", fixture->err.text);
	}
}

/* Expects a mistake with these facts; FILE stands for the configuration's path. */
static inline void assert_mistake(
	struct fixture *fixture, const struct options *options, const char *expected)
{
	if (load(fixture, options)) {
		config_finish(&fixture->config);
		fail_msg("expected: %s", expected);
	}
	char text[ERROR_TEXT_MAX + PATH_BYTES];
	const char *at = strstr(expected, "FILE");
	if (at) {
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - expected), expected,
			fixture->file, at + 4);
	} else {
		snprintf(text, sizeof(text), "%s", expected);
	}
	assert_names(fixture->err.text, text);
	assert_int_equal(fixture->err.code, ERROR_CONFIG);
	assert_null(strchr(fixture->err.text, '\n'));
}

static const char *const agent_words[] = {"/opt/bin/some-agent", "--acp", NULL};
static const struct options with_agent = {.agent_argv = agent_words};
static const struct options no_options = {0};

static inline void assert_words(char *const *words, const char *expected)
{
	char joined[256] = "";
	size_t used = 0;
	for (; *words; words++) {
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s|", *words);
	}
	assert_string_equal(joined, expected);
}

#define CONFIG_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
