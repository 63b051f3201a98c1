/* SPDX-License-Identifier: MIT */
#include "sync/snapshot.h"
#include "sync/snapshot_impl.h"

#include "tests/unit/store_fixture.h"

static void test_ordinary_paths_are_safe(void **state)
{
	static const char *const paths[] = {"a", "a/b", ".gitignore", ".github/x", "git", "a.git",
		".gi", "git~2", "...", "a/..b", "\xff\n", "-", ".g\xe2\x80\x90it", ".gitx ",
		"git~1x", ".\xef\xbb\xbegit"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		if (!snapshot_path_is_safe(span_of(paths[i]))) {
			fail_msg("\"%s\" is refused", paths[i]);
		}
	}
}

static void test_paths_that_leave_the_root_or_name_a_repository_are_not(void **state)
{
	static const char *const paths[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a",
		"a/./b", ".git", ".GIT", "a/.Git/b", ".git/config", "git~1", "GIT~1/x", ".git ",
		".git.", ".git. .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1.",
		".g\xe2\x80\x8cit", "\xef\xbb\xbf.git", ".git\xe2\x80\x8d",
		".G\xe2\x81\xafI\xe2\x80\xaet"};
	for (size_t i = 0; i < ARRAY_LENGTH(paths); i++) {
		if (snapshot_path_is_safe(span_of(paths[i]))) {
			fail_msg("\"%s\" is taken", paths[i]);
		}
	}
	assert_false(snapshot_path_is_safe((struct span){"a\0b", 3}));
	assert_false(snapshot_path_is_safe((struct span){NULL, 0}));
}

/* Names that git 2.39 refuses, and names that it accepts. */
static void test_gitmodules_is_known_in_any_spelling(void **state)
{
	static const char *const names[] = {".gitmodules", ".GitModules", ".gitmodules .",
		".gitmodules:x", "gitmod~1", "GITMOD~4 ", "gi7eba~1", "gi7eba~9", "gi7eb~10",
		"gi7~1234", "~1000000", "GI7E~123:", ".git\xe2\x80\x8cmodules"};
	static const char *const others[] = {"", ".gitmodule", ".gitmodulesx", "gitmodules",
		"gitmod~5", "gitmod~1x", "gi7eba~0", "gi7eba~x", "gi7eba1", "gi7eb~1", "gi7d~123",
		".gitattributes", "~100000x"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		if (!snapshot_name_is_gitmodules(span_of(names[i]))) {
			fail_msg("\"%s\" is taken", names[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		if (snapshot_name_is_gitmodules(span_of(others[i]))) {
			fail_msg("\"%s\" is refused", others[i]);
		}
	}
}

static void test_our_own_names_are_left_out(void **state)
{
	static const char *const ours[] = {".git", "a.c.20260131T101502-3f2a91.acp-conflict",
		".acp-broker-.tmp", ".acp-broker-17-x.tmp"};
	static const char *const others[] = {"acp-conflict", "a.acp-conflict.c", ".acp-broker-x",
		"acp-broker-x.tmp", ".tmp", ""};
	for (size_t i = 0; i < ARRAY_LENGTH(ours); i++) {
		assert_true(snapshot_name_is_left_out(span_of(ours[i])));
	}
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_false(snapshot_name_is_left_out(span_of(others[i])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ordinary_paths_are_safe),
		cmocka_unit_test(test_paths_that_leave_the_root_or_name_a_repository_are_not),
		cmocka_unit_test(test_gitmodules_is_known_in_any_spelling),
		cmocka_unit_test(test_our_own_names_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
