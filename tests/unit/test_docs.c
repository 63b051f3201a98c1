/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "broker/config/config_keys.h"
#include "broker/config/options.h"
#include "providers/container/container.h"
#include "providers/daytona/daytona.h"
#include "providers/exec/exec.h"
#include "providers/kubernetes/kubernetes.h"
#include "providers/local/local.h"
#include "providers/provider.h"
#include "providers/slurm/slurm.h"
#include "providers/ssh/ssh.h"

enum { PAGE_MAX = 1 << 20, LINE_MAX_BYTES = 256 };

/* The manual pages' sources, named on the command line. */
static char *program_page;
static char *config_page;

static char *read_page(const char *path)
{
	char *text = mem_alloc(PAGE_MAX);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	size_t len = fread(text, 1, PAGE_MAX - 1, file);
	fclose(file);
	assert_in_range(len, 1, PAGE_MAX - 2);
	text[len] = '\0';
	return text;
}

/* The lines from the one that begins with `first` to the one that begins with `after`. */
static char *cut(const char *text, const char *first, const char *after)
{
	char mark[LINE_MAX_BYTES];
	snprintf(mark, sizeof(mark), "\n%s", first);
	const char *start = strstr(text, mark);
	if (!start) {
		return NULL;
	}
	start++;
	snprintf(mark, sizeof(mark), "\n%s", after);
	const char *end = strstr(start, mark);
	return mem_strndup((struct span){start, end ? (size_t)(end - start) + 1 : strlen(start)});
}

static char *section_of(enum section_kind kind)
{
	char header[LINE_MAX_BYTES];
	snprintf(header, sizeof(header), "# [%s%s]", section_kind_name(kind),
		section_kind_is_named(kind) ? " NAME" : "");
	char *section = cut(config_page, header, "# ");
	if (!section) {
		fail_msg("no section \"%s\"", header);
	}
	return section;
}

static void check_key(const char *section, const struct setting_key *key)
{
	char start[LINE_MAX_BYTES];
	snprintf(start, sizeof(start), "*%s* = ", key->name);
	char *text = cut(section, start, "*");
	if (!text) {
		fail_msg("%s is not documented", key->name);
	}
	if (key->fallback && !strstr(text, key->fallback)) {
		fail_msg("%s: the default %s is not documented", key->name, key->fallback);
	}
	for (size_t i = 0; key->choices && key->choices[i]; i++) {
		if (!strstr(text, key->choices[i])) {
			fail_msg("%s: %s is not documented", key->name, key->choices[i]);
		}
	}
	if (setting_is_list(key) && !strstr(text, "A list.")) {
		fail_msg("%s: that it is a list is not documented", key->name);
	}
	if (key->type == SETTING_DURATION && key->max == 0 && !strstr(text, "*never*")) {
		fail_msg("%s: never is not documented", key->name);
	}
	free(text);
}

static const struct setting_key *local_keys(struct provider **out_provider, size_t *out_count)
{
	static const char *const environment[] = {NULL};
	static const struct provider_context context = {.environment = environment};
	*out_provider = local_provider_create(&context);
	return provider_keys(*out_provider, out_count);
}

static void test_every_key_is_documented_with_its_default(void **state)
{
	for (int kind = 0; kind < SECTION_KIND_COUNT; kind++) {
		char *section = section_of(kind);
		size_t count;
		const struct setting_key *keys = section_keys(kind, &count);
		for (size_t i = 0; i < count; i++) {
			check_key(section, &keys[i]);
		}
		free(section);
	}
}

static void test_every_key_of_a_provider_is_documented(void **state)
{
	struct provider *provider;
	size_t count;
	const struct setting_key *keys = local_keys(&provider, &count);
	char *section = section_of(SECTION_PROFILE);
	for (size_t i = 0; i < count; i++) {
		check_key(section, &keys[i]);
	}
	free(section);
	provider_destroy(provider);
}

/* Takes the provider over. */
static void check_provider(struct provider *provider, const char *heading)
{
	size_t count;
	const struct setting_key *keys = provider_keys(provider, &count);
	char *section = cut(config_page, heading, "# ");
	assert_non_null(section);
	for (size_t i = 0; i < count; i++) {
		check_key(section, &keys[i]);
	}
	free(section);
	provider_destroy(provider);
}

static void test_every_key_of_ssh_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(ssh_provider_create(&context), "# SSH");
}

static void test_every_key_of_daytona_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(daytona_provider_create(&context), "# DAYTONA");
}

static void test_every_key_of_exec_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(exec_provider_create(&context), "# EXEC");
}

static void test_every_key_of_a_container_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(container_provider_create(&context), "# CONTAINER");
}

static void test_every_key_of_slurm_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(slurm_provider_create(&context), "# SLURM");
}

static void test_every_key_of_kubernetes_is_documented(void **state)
{
	static const struct provider_context context = {0};
	check_provider(kubernetes_provider_create(&context), "# KUBERNETES");
}

static bool has_key(const struct setting_key *local, size_t local_count, enum section_kind kind,
	const char *name)
{
	size_t count;
	const struct setting_key *keys = section_keys(kind, &count);
	return setting_key_find(keys, count, name) ||
	       (kind == SECTION_PROFILE && setting_key_find(local, local_count, name));
}

static int count_known_keys(
	const char *section, enum section_kind kind, const struct setting_key *local, size_t count)
{
	int found = 0;
	for (const char *at = section; (at = strstr(at, "\n*")) != NULL; at++) {
		char name[LINE_MAX_BYTES];
		if (sscanf(at, "\n*%200[a-z-]* = ", name) != 1) {
			continue;
		}
		if (!has_key(local, count, kind, name)) {
			fail_msg("[%s] has no key %s", section_kind_name(kind), name);
		}
		found++;
	}
	return found;
}

static void test_every_documented_key_exists(void **state)
{
	struct provider *provider;
	size_t count;
	const struct setting_key *local = local_keys(&provider, &count);
	int found = 0;
	for (int kind = 0; kind < SECTION_KIND_COUNT; kind++) {
		char *section = section_of(kind);
		found += count_known_keys(section, kind, local, count);
		free(section);
	}
	assert_true(found > 20);
	provider_destroy(provider);
}

static void test_every_option_and_command_is_documented(void **state)
{
	for (size_t i = 0; options_option_name(i); i++) {
		char line[LINE_MAX_BYTES];
		snprintf(line, sizeof(line), "\n*\\%s*", options_option_name(i));
		if (!strstr(program_page, line)) {
			fail_msg("%s is not documented", options_option_name(i));
		}
	}
	for (size_t i = 0; options_command_name(i); i++) {
		char line[LINE_MAX_BYTES];
		snprintf(line, sizeof(line), "\n*%s*", options_command_name(i));
		if (!strstr(program_page, line)) {
			fail_msg("%s is not documented", options_command_name(i));
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_key_is_documented_with_its_default),
		cmocka_unit_test(test_every_key_of_a_provider_is_documented),
		cmocka_unit_test(test_every_key_of_ssh_is_documented),
		cmocka_unit_test(test_every_key_of_daytona_is_documented),
		cmocka_unit_test(test_every_key_of_exec_is_documented),
		cmocka_unit_test(test_every_key_of_a_container_is_documented),
		cmocka_unit_test(test_every_key_of_slurm_is_documented),
		cmocka_unit_test(test_every_key_of_kubernetes_is_documented),
		cmocka_unit_test(test_every_documented_key_exists),
		cmocka_unit_test(test_every_option_and_command_is_documented),
	};
	if (argc != 1 && argc != 3) {
		fputs("usage: test_docs [acp-broker.1.scd acp-broker.config.5.scd]\n", stderr);
		return 2;
	}
	/* Without arguments, reads the pages of the source tree in which it runs. */
	program_page = read_page(argc == 3 ? argv[1] : "docs/acp-broker.1.scd");
	config_page = read_page(argc == 3 ? argv[2] : "docs/acp-broker.config.5.scd");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(program_page);
	free(config_page);
	return failed;
}
