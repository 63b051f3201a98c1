/* SPDX-License-Identifier: MIT */
#include "sync/guard_paths.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "tests/support/facts.h"

static struct guard_paths *made(const char *const *values)
{
	struct error err;
	struct guard_paths *guard = guard_paths_create(values, &err);
	if (!guard) {
		fail_msg("%s", err.text);
	}
	return guard;
}

struct match_case {
	const char *path;
	bool is_link, has;
};

static void check(const char *const *values, const struct match_case *cases, size_t count)
{
	struct guard_paths *first = made(values);
	struct guard_paths *guard = guard_paths_copy(first);
	guard_paths_destroy(first);
	for (size_t i = 0; i < count; i++) {
		if (guard_paths_have(guard, "/w", cases[i].path, cases[i].is_link) !=
			cases[i].has) {
			fail_msg("%s: expected %d", cases[i].path, cases[i].has);
		}
	}
	guard_paths_destroy(guard);
}

static void test_the_default_knows_the_files_that_tools_run_commands_from(void **state)
{
	static const struct match_case cases[] = {
		{".envrc", false, true},
		{"deep/er/.envrc", false, true},
		{".ENVRC", false, true},
		{".envrc.example", false, false},
		{"x.envrc", false, false},
		{".gitmodules", false, true},
		{"a/.gitattributes", false, true},
		{".gitignore", false, false},
		{".vscode/tasks.json", false, true},
		{"pkg/.VSCode/Settings.json", false, true},
		{".vscode/launch.json", false, true},
		{".vscode/extensions.json", false, false},
		{"tasks.json", false, false},
		{".githooks/pre-commit", false, true},
		{"pkg/.devcontainer/x/devcontainer.json", false, true},
		{".devcontainer.json", false, true},
		{"My.code-workspace", false, true},
		{"code-workspace", false, false},
		{".zed/tasks.json", false, true},
		{".zed/settings.json", false, true},
		{".idea/runConfigurations/All.xml", false, true},
		{".idea/workspace.xml", false, true},
		{".idea/misc.xml", false, false},
		{".mcp.json", false, true},
		{".husky/pre-commit", false, true},
		{".husky/_/husky.sh", false, true},
		{".husky", false, true},
		{"husky/pre-commit", false, false},
		{".claude/settings.json", false, true},
		{".claude/settings.local.json", false, true},
		{".claude/commands/x.md", false, false},
		{"src/main.c", false, false},
	};
	check(NULL, cases, sizeof(cases) / sizeof(*cases));
}

static void test_a_link_counts_where_such_a_file_would_be_found_through_it(void **state)
{
	static const struct match_case cases[] = {
		{".vscode", true, true},
		{".vscode", false, false},
		{"deep/.Claude", true, true},
		{".idea", true, true},
		{".envrc", true, true},
		{"vscode", true, false},
		{".vscode/other", true, false},
	};
	check(NULL, cases, sizeof(cases) / sizeof(*cases));
}

static void test_what_some_file_system_takes_for_such_a_name_is_one(void **state)
{
	static const struct match_case cases[] = {
		{".envrc.", false, true},
		{"a/.envrc. .", false, true},
		{".envrc::$DATA", false, true},
		{".en\xe2\x80\x8cvrc", false, true},
		{".env\xc2\xadrc", false, true},
		{".vscode/tas\xe2\x84\xaas.json", false, true},
		{".v\xc5\xbf"
		 "code./Settings.json ",
			false, true},
		{".idea/runCon\xef\xac\x81gurations/x", false, true},
		{".vscode ", true, true},
		{".envrc\xc3\xa9", false, false},
		{".envrc\xff", false, false},
		{"...", false, false},
	};
	static const char *const own[] = {"a:b", "c.", "\xc3\x84", NULL};
	static const struct match_case own_cases[] = {{"a:b", false, true}, {"x/c.", false, true},
		{"a", false, false}, {"\xc3\x84", false, true}};
	check(NULL, cases, sizeof(cases) / sizeof(*cases));
	check(own, own_cases, sizeof(own_cases) / sizeof(*own_cases));
}

static void test_values_take_the_place_of_the_default_unless_it_is_named(void **state)
{
	static const char *const own[] = {"Makefile", "/build/", "tools/**/*.sh", NULL};
	static const struct match_case cases[] = {
		{"Makefile", false, true},
		{"sub/Makefile", false, true},
		{"build/x/y", false, true},
		{"sub/build/x", false, false},
		{"tools/a/b/run.sh", false, true},
		{"tools/run.py", false, false},
		{".envrc", false, false},
	};
	static const char *const more[] = {"default", "Makefile", NULL};
	static const struct match_case with_default[] = {
		{"Makefile", false, true}, {".envrc", false, true}};
	static const char *const none[] = {"none", NULL};
	static const struct match_case nothing[] = {{".envrc", false, false}};
	check(own, cases, sizeof(cases) / sizeof(*cases));
	check(more, with_default, 2);
	check(none, nothing, 1);
}

static void test_the_folders_above_the_root_count_but_for_globs_of_the_root(void **state)
{
	static const char *const values[] = {"default", "/Makefile", "/conf/x", NULL};
	struct guard_paths *guard = made(values);
	assert_true(guard_paths_have(guard, "/home/u/w/.husky", "pre-commit", false));
	assert_true(guard_paths_have(guard, "/home/u/w/.HUSKY/_/", "x", false));
	assert_true(guard_paths_have(guard, "/home/u/.vscode", "tasks.json", false));
	assert_false(guard_paths_have(guard, "/home/u/.vscode", "x/tasks.json", false));
	assert_false(
		guard_paths_have(guard, "/home/u/.claude/worktrees/w", "settings.json", false));
	assert_false(guard_paths_have(guard, "/home/u/.vscode/w", "f", true));
	assert_false(guard_paths_have(guard, "/", "conf/Makefile", false));
	assert_true(guard_paths_have(guard, "/", "conf/x", false));
	assert_false(guard_paths_have(guard, "/conf", "x", false));
	assert_true(guard_paths_have(guard, "", "home/w/.husky/x", false));
	guard_paths_destroy(guard);
}

static void test_a_path_too_long_for_a_name_is_one_of_them(void **state)
{
	struct guard_paths *guard = made(NULL);
	char path[5000];
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_true(guard_paths_have(guard, "/w", path, false));
	guard_paths_destroy(guard);
}

static void test_a_value_that_cannot_be_meant_is_refused(void **state)
{
	static const char *const values[] = {"", "/", "../x", "~/x", "[a", "a//b", NULL};
	for (size_t i = 0; values[i]; i++) {
		struct error err = {.code = ERROR_NONE};
		const char *const list[] = {values[i], NULL};
		assert_null(guard_paths_create(list, &err));
		assert_int_equal(err.code, ERROR_CONFIG);
	}
	struct error err;
	const char *const two[] = {"none", "x", NULL};
	assert_null(guard_paths_create(two, &err));
	assert_names(err.text, "\"none\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_default_knows_the_files_that_tools_run_commands_from),
		cmocka_unit_test(test_a_link_counts_where_such_a_file_would_be_found_through_it),
		cmocka_unit_test(test_what_some_file_system_takes_for_such_a_name_is_one),
		cmocka_unit_test(test_values_take_the_place_of_the_default_unless_it_is_named),
		cmocka_unit_test(test_the_folders_above_the_root_count_but_for_globs_of_the_root),
		cmocka_unit_test(test_a_path_too_long_for_a_name_is_one_of_them),
		cmocka_unit_test(test_a_value_that_cannot_be_meant_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
