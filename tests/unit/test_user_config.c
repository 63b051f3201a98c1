/* SPDX-License-Identifier: MIT */
#include "base/user_config.h"

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
#include "base/error.h"

struct fixture {
	char home[64];
	struct user_repository repository;
	struct user_config config;
	struct error err;
};

static void write_file(const struct fixture *fixture, const char *name, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", fixture->home, name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	fclose(file);
}

static int setup(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	snprintf(fixture->home, sizeof(fixture->home), "/tmp/user-config-XXXXXX");
	assert_non_null(mkdtemp(fixture->home));
	user_config_set_environment(NULL);
	snprintf(fixture->repository.folder, PATH_MAX, "%s/work/one/.git", fixture->home);
	snprintf(fixture->repository.common, PATH_MAX, "%s/work/one/.git", fixture->home);
	write_file(fixture, "work/one/.git/HEAD", "ref: refs/heads/feature/one\n");
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char command[100];
	user_config_set_environment(NULL);
	user_config_finish(&fixture->config);
	snprintf(command, sizeof(command), "rm -rf '%s'", fixture->home);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	free(fixture);
	return 0;
}

static bool try_again(struct fixture *fixture)
{
	user_config_finish(&fixture->config);
	return user_config_read(
		&fixture->config, fixture->home, &fixture->repository, &fixture->err);
}

static const char *get(struct fixture *fixture, const char *key)
{
	assert_true(try_again(fixture));
	return user_config_get(&fixture->config, key);
}

static void test_settings_are_read_as_git_reads_them(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *text, *key, *value;
	} all[] = {
		{"[a]\nb=c", "a.b", "c"},
		{"\xef\xbb\xbf[a]\nb=c", "a.b", "c"},
		{"[A]B = c d  # e\n", "a.b", "c d"},
		{"[a]\r\n\tb = c\r\n", "a.b", "c"},
		{"[a \"B \\\"c\\\\\"]\nd = e", "a.B \"c\\.d", "e"},
		{"[a.B]\nc = d", "a.b.c", "d"},
		{"[a]\nb = \" c ;\" d", "a.b", " c ; d"},
		{"[a]\nb = c\\\nd\\t\\\"\\\\", "a.b", "cd\t\"\\"},
		{"[a]\nb = one\nb = two", "a.b", "two"},
		{"[a]\nb", "a.b", ""},
		{"[a]\nb =\n", "a.b", ""},
		{"[a]\nb = c\td", "a.b", "c\td"}, // as since git 2.45
		{"# [a]\n; b\n[x] ; y\nb = z\n", "x.b", "z"},
		{"[x]\nb = z\n", "a.b", NULL},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		write_file(fixture, ".gitconfig", all[i].text);
		const char *value = get(fixture, all[i].key);
		if (all[i].value) {
			assert_non_null(value);
			assert_string_equal(value, all[i].value);
		} else {
			assert_null(value);
		}
	}
}

static void test_what_git_would_not_read_is_refused(void **state)
{
	struct fixture *fixture = *state;
	static const char *const all[] = {"a = b", "[a", "[a]\n= b", "[a]\nb c", "[a]\nb = \"c",
		"[a]\nb = \\c", "[a \"b\n\"]", "[a \"b\"\n", "[a b]", "[a]\n\x80 = b"};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		write_file(fixture, ".gitconfig", all[i]);
		assert_false(try_again(fixture));
		assert_int_equal(fixture->err.code, ERROR_CONFIG);
		assert_non_null(strstr(fixture->err.text, "/.gitconfig"));
	}
}

static void test_a_truth_has_several_names(void **state)
{
	struct fixture *fixture = *state;
	write_file(fixture, ".gitconfig",
		"[t]\na\nb = Yes\nc = 1\nd = on\ne = true\n[f]\na =\nb = no\nc = 0\nd = x\n");
	assert_true(try_again(fixture));
	for (const char *name = "abcde"; *name; name++) {
		char key[] = {'t', '.', *name, '\0'};
		assert_true(user_config_is_true(&fixture->config, key));
		key[0] = 'f';
		assert_false(user_config_is_true(&fixture->config, key));
	}
}

static void test_files_are_included_wherever_they_are(void **state)
{
	struct fixture *fixture = *state;
	write_file(fixture, ".gitconfig",
		"[a]\nb = 1\n[include]\npath = ~/dot/files\npath = dot/other\npath = ~/none\n"
		"[a]\nf = 6\n");
	write_file(fixture, "dot/files", "[a]\nb = 2\nc = 3\n[include]\npath = more\n");
	write_file(fixture, "dot/more", "[a]\nd = 4\n");
	write_file(fixture, "dot/other", "[a]\ne = 5\n");
	assert_true(try_again(fixture));
	for (int i = 2; i < 7; i++) {
		char key[] = {'a', '.', (char)('a' + i - 1), '\0'},
		     value[] = {(char)('0' + i), '\0'};
		assert_string_equal(user_config_get(&fixture->config, key), value);
	}
}

static void test_a_condition_says_what_is_included(void **state)
{
	struct fixture *fixture = *state;
	static const struct {
		const char *condition;
		bool is_met;
	} all[] = {
		{"gitdir:~/work/", true},
		{"gitdir:~/work/one/.git", true},
		{"gitdir:~/other/", false},
		{"gitdir:~/work", false},
		{"gitdir:work/", true},
		{"gitdir:./work/", true},
		{"gitdir:**/one/.git", true},
		{"gitdir:~/WORK/", false},
		{"gitdir/i:~/WORK/", true},
		{"gitdir:/nowhere/", false},
		{"onbranch:feature/", true},
		{"onbranch:feature/*", true},
		{"onbranch:feature", false},
		{"onbranch:main", false},
	};
	write_file(fixture, "inc", "[a]\nb = c\n");
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char text[200];
		snprintf(
			text, sizeof(text), "[includeIf \"%s\"]\npath = ~/inc\n", all[i].condition);
		write_file(fixture, ".gitconfig", text);
		const char *value = get(fixture, "a.b");
		if ((value != NULL) != all[i].is_met) {
			fail_msg("%s", all[i].condition);
		}
	}
}

/* The setting is reported, for callers that must know what could apply. */
static void test_what_stands_under_an_unknown_condition_is_uncertain(void **state)
{
	struct fixture *fixture = *state;
	write_file(
		fixture, ".gitconfig", "[includeIf \"hasconfig:remote.*.url:x\"]\npath = ~/inc\n");
	write_file(fixture, "inc", "[a]\nb = c\n[include]\npath = more\n");
	write_file(fixture, "more", "[a]\nd = e\n");
	assert_null(get(fixture, "a.b"));
	assert_null(get(fixture, "a.d"));
	const struct user_setting *last = &fixture->config.settings[fixture->config.count - 1];
	assert_string_equal(last->key, "a.d");
	assert_false(last->is_certain);
}

static void test_an_include_that_cannot_be_read_may_be_passed_over(void **state)
{
	struct fixture *fixture = *state;
	static const char *const all[] = {"~somebody/x", "%(prefix)/x", "~"};
	char text[200];
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		snprintf(text, sizeof(text), "[include]\npath = %s\n[a]\nb = c\n", all[i]);
		write_file(fixture, ".gitconfig", text);
		assert_false(try_again(fixture));
		user_config_finish(&fixture->config);
		fixture->config.passes_unreadable = true;
		assert_true(user_config_read(
			&fixture->config, fixture->home, &fixture->repository, &fixture->err));
		assert_string_equal(user_config_get(&fixture->config, "a.b"), "c");
	}
}

/* nobody has no home, so such a file is missing, as any other may be. */
static void test_the_home_of_another_user_is_looked_up(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	write_file(fixture, ".gitconfig",
		"[include]\npath = ~nobody/no/such/file\n[a]\nb = c\nroot = ~root\nfile = "
		"~root/x\n");
	assert_string_equal(get(fixture, "a.b"), "c");
	assert_true(user_config_file(
		&fixture->config, "a.root", "", fixture->home, path, &fixture->err));
	assert_string_equal(path, "/root");
	assert_true(user_config_file(
		&fixture->config, "a.file", "", fixture->home, path, &fixture->err));
	assert_string_equal(path, "/root/x");
}

static void test_includes_have_an_end(void **state)
{
	struct fixture *fixture = *state;
	write_file(fixture, ".gitconfig", "[include]\npath = ~/.gitconfig\n");
	assert_false(try_again(fixture));
	assert_int_equal(fixture->err.code, ERROR_LIMIT);
	write_file(fixture, ".gitconfig", "[include]\npath = ~somebody/x\n");
	assert_false(try_again(fixture));
	assert_int_equal(fixture->err.code, ERROR_CONFIG);
	assert_non_null(strstr(fixture->err.text, "~somebody/x"));
	write_file(fixture, ".gitconfig", "[include]\npath = ~/a\npath = ~/a\npath = ~/a\n");
	write_file(fixture, "a", "[include]\npath = b\npath = b\npath = b\npath = b\npath = b\n");
	write_file(fixture, "b", "[include]\npath = c\npath = c\npath = c\npath = c\npath = c\n");
	write_file(fixture, "c", "[include]\npath = d\npath = d\npath = d\npath = d\npath = d\n");
	write_file(fixture, "d", "[a]\nb = c\n");
	assert_false(try_again(fixture));
	assert_int_equal(fixture->err.code, ERROR_LIMIT);
	char text[300 * 16 + 16] = "[include]\n"; // each may ask a server
	for (int i = 0; i < 300; i++) {
		strncat(text, "path = ~nobody\n", sizeof(text) - strlen(text) - 1);
	}
	write_file(fixture, ".gitconfig", text);
	assert_false(try_again(fixture));
	assert_int_equal(fixture->err.code, ERROR_LIMIT);
}

static void test_the_environment_says_where_the_users_files_are(void **state)
{
	struct fixture *fixture = *state;
	char xdg[128], global[128], path[PATH_MAX], expected[PATH_MAX];
	const char *environment[] = {xdg, NULL, NULL};
	snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", fixture->home);
	snprintf(global, sizeof(global), "GIT_CONFIG_GLOBAL=%s/global", fixture->home);
	write_file(fixture, ".config/git/config", "[a]\nb = home\n");
	write_file(fixture, "xdg/git/config", "[a]\nb = xdg\n");
	write_file(fixture, "global", "[c]\nd = global\n");
	assert_string_equal(get(fixture, "a.b"), "home");
	user_config_set_environment(environment);
	assert_string_equal(get(fixture, "a.b"), "xdg");
	assert_true(user_config_file(
		&fixture->config, "a.file", "ignore", fixture->home, path, &fixture->err));
	snprintf(expected, sizeof(expected), "%s/xdg/git/ignore", fixture->home);
	assert_string_equal(path, expected);
	write_file(fixture, ".gitconfig", "[a]\nb = own\nfile = ~/f\n");
	assert_string_equal(get(fixture, "a.b"), "own");
	assert_true(user_config_file(
		&fixture->config, "a.file", "ignore", fixture->home, path, &fixture->err));
	snprintf(expected, sizeof(expected), "%s/f", fixture->home);
	assert_string_equal(path, expected);
	environment[1] = global;
	user_config_set_environment(environment);
	assert_null(get(fixture, "a.b"));
	assert_string_equal(get(fixture, "c.d"), "global");
}

static void test_a_work_tree_may_have_its_own(void **state)
{
	struct fixture *fixture = *state;
	snprintf(fixture->repository.folder, PATH_MAX, "%s/work/one/.git/worktrees/w",
		fixture->home);
	write_file(fixture, "work/one/.git/config", "[a]\nb = c\n");
	write_file(fixture, "work/one/.git/worktrees/w/config.worktree", "[a]\nb = d\n");
	assert_string_equal(get(fixture, "a.b"), "c");
	write_file(fixture, "work/one/.git/config",
		"[extensions]\nworktreeConfig = true\n[a]\nb = c\n");
	assert_string_equal(get(fixture, "a.b"), "d");
}

#define CONFIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_settings_are_read_as_git_reads_them),
		CONFIG_TEST(test_what_git_would_not_read_is_refused),
		CONFIG_TEST(test_a_truth_has_several_names),
		CONFIG_TEST(test_files_are_included_wherever_they_are),
		CONFIG_TEST(test_a_condition_says_what_is_included),
		CONFIG_TEST(test_what_stands_under_an_unknown_condition_is_uncertain),
		CONFIG_TEST(test_an_include_that_cannot_be_read_may_be_passed_over),
		CONFIG_TEST(test_the_home_of_another_user_is_looked_up),
		CONFIG_TEST(test_includes_have_an_end),
		CONFIG_TEST(test_the_environment_says_where_the_users_files_are),
		CONFIG_TEST(test_a_work_tree_may_have_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
