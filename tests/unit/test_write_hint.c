/* SPDX-License-Identifier: MIT */
#include "providers/local/write_hint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"

/* Folders below the directory in which the test runs; one of them is a home. */
static char top[PATH_MAX];
static struct write_hint hint;
static struct sandbox_root root;
static struct sandbox sandbox = {.roots = &root, .root_count = 1};

static const char *in_top(const char *name)
{
	static char path[PATH_MAX * 2];
	text_whole(path, sizeof(path), "%s/%s", top, name);
	return path;
}

static int set_up(void **state)
{
	static const char folders[] =
		"mkdir -p home/.cargo/registry/index home/.cargo/bin home/shared/deep home/bin "
		"home/.local/bin home/private home/writable state/copies/1 data/deep data/.git "
		"data/tools/bin work";
	char command[PATH_MAX * 2], home[PATH_MAX], state_folder[PATH_MAX];
	struct settings settings;
	const struct owner owner = {.is_other = false};
	assert_non_null(getcwd(top, sizeof(top)));
	assert_true(text_append(top, sizeof(top), "/hint.XXXXXX"));
	assert_non_null(mkdtemp(top));
	text_whole(command, sizeof(command), "cd '%s' && %s && ln -s data link", top, folders);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	text_whole(home, sizeof(home), "%s", in_top("home"));
	text_whole(state_folder, sizeof(state_folder), "%s", in_top("state"));
	settings_init(&settings);
	settings_add(&settings, "allow-read", "~/shared", "test");
	settings_add(&settings, "allow-read", "~/.local/bin", "test");
	settings_add(&settings, "allow-read", "~/bin", "test");
	settings_add(&settings, "allow-write", "~/writable", "test");
	write_hint_init(&hint, &settings, home, state_folder, &owner);
	settings_finish(&settings);
	root.local = mem_strdup(in_top("work"));
	root.runtime = mem_strdup(in_top("state/copies/1"));
	return 0;
}

static int tear_down(void **state)
{
	char command[PATH_MAX * 2];
	write_hint_finish(&hint);
	free((char *)root.local);
	free((char *)root.runtime);
	text_whole(command, sizeof(command), "rm -r '%s'", top);
	return system(command); // NOLINT(cert-env33-c): of the test's own
}

/* `expected` is below top; NULL: no folder is suggested. */
static void expect(const char *path, const char *expected)
{
	char out[PATH_MAX];
	char absolute[PATH_MAX * 2];
	text_whole(absolute, sizeof(absolute), "%s", in_top(path));
	bool is_found = write_hint_find(&hint, &sandbox, absolute, out);
	if (is_found != (expected != NULL)) {
		fail_msg("%s: %s", path, is_found ? out : "nothing");
	}
	if (expected) {
		assert_string_equal(out, in_top(expected));
	}
}

static void test_in_the_home_what_is_shown_is_offered_as_a_whole(void **state)
{
	expect("home/.cargo/registry/index/new", "home/.cargo/registry");
	expect("home/shared/deep/new/file", "home/shared");
	expect("home/shared", "home/shared");
}

static void test_what_the_users_shell_or_git_runs_is_not_offered(void **state)
{
	expect("home/.cargo/bin/tool", NULL);
	expect("home/.cargo/config.toml", NULL);
	expect("home/.local/bin/tool", NULL);
	expect("home/bin/tool", NULL);
	expect("data/.git/config", NULL);
	expect("data/tools/bin/tool", NULL);
}

static void test_what_is_hidden_written_or_the_brokers_is_not_offered(void **state)
{
	expect("home/private/new", NULL);
	expect("home/.bashrc", NULL);
	expect("home", NULL);
	expect("new", NULL); // above the home
	expect("home/writable/new", NULL);
	expect("state/sessions/new", NULL);
	expect("work/file", NULL);
	expect("state/copies/1/file", NULL);
}

/* Whether the folder of the test is one that a cell shows: not in a hidden folder, or in /tmp. */
static bool is_offered_here(void)
{
	static const char *const parts[] = {"/bin/", "/sbin/", "/hooks/", "/."};
	static const char *const own[] = {"/tmp/", "/var/tmp/", "/run/", "/dev/", "/boot/"};
	bool is = true;
	for (size_t i = 0; i < ARRAY_LENGTH(parts); i++) {
		is = is && !strstr(top, parts[i]);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		is = is && strncmp(top, own[i], strlen(own[i])) != 0;
	}
	return is;
}

static void test_elsewhere_a_folder_of_the_users_is_offered(void **state)
{
	char out[PATH_MAX];
	bool is_plain = is_offered_here();
	expect("data/deep/new", is_plain ? "data/deep" : NULL);
	expect("data/new/folder/file", is_plain ? "data" : NULL);
	expect("link/new", NULL);
	expect("data/../data/new", NULL);
	assert_false(write_hint_find(&hint, &sandbox, "/usr/lib/new", out) && geteuid() != 0);
	assert_false(write_hint_find(&hint, &sandbox, "/tmp/new", out));
	assert_false(write_hint_find(&hint, &sandbox, "/", out));
	assert_false(write_hint_find(&hint, &sandbox, "relative", out));
	assert_false(write_hint_find(&hint, &sandbox, "", out));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_in_the_home_what_is_shown_is_offered_as_a_whole),
		CASE(test_what_the_users_shell_or_git_runs_is_not_offered),
		CASE(test_what_is_hidden_written_or_the_brokers_is_not_offered),
		CASE(test_elsewhere_a_folder_of_the_users_is_offered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
