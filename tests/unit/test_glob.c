/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *pattern;
	const char *path;
	bool matches;
} match_cases[] = {
	{"/a/b", "/a/b", true},
	{"/a/b", "/a/c", false},
	{"/a/b", "/a/b/c", false},
	{"/a/b", "a/b", false},
	{"/a/b", "/a", false},
	{"", "", true},
	{"", "a", false},
	{"*", "", true},
	{"*", "a", true},
	{"*", "a/b", false},
	{"/*", "/", true},
	{"/a/*", "/a/b", true},
	{"/a/*", "/a/.hidden", true},
	{"/a/*", "/a/b/c", false},
	{"/a/*.c", "/a/b.c", true},
	{"/a/*.c", "/a/b.c.h", false},
	{"/a/*.c", "/a/.c", true},
	{"/a/b*d*f", "/a/bcdef", true},
	{"/a/b*d*f", "/a/bdf", true},
	{"/a/b*d*f", "/a/bcef", false},
	{"/a/b***", "/a/b", true},
	/* components */
	{"**", "a/b/c", true},
	{"**", "", true},
	{"/**", "/", true},
	{"/a/**", "/a", true},
	{"/a/**", "/a/b/c", true},
	{"/a/**", "/ab", false},
	{"**/.git/**", ".git/hooks/x", true},
	{"**/.git/**", "x/.git", true},
	{"**/.git/**", "x/y/.git/config", true},
	{"**/.git/**", "x/.github/y", false},
	{"**/a/**/b", "a/b", true},
	{"**/a/**/b", "x/a/y/z/b", true},
	{"**/a/**/b", "x/a/y/z/c", false},
	{"**/a/**/b", "a/b/a/c/b", true},
	{"a/**/**/b", "a/b", true},
	{"**/*.c", "x/y/z.c", true},
	{"**/*.c", "z.c", true},
	{"src/**/test_*", "src/test_x", true},
	{"src/**/test_*", "src/a/b/test_x", true},
	{"src/**/test_*", "lib/a/test_x", false},
	/* single characters and sets */
	{"?", "a", true},
	{"?", "", false},
	{"?", "ab", false},
	{"?", "ä", true},
	{"?", "\xff", true},
	{"a?c", "a/c", false},
	{"[abc]", "b", true},
	{"[abc]", "d", false},
	{"[a-c]x", "bx", true},
	{"[!a-c]", "d", true},
	{"[!a-c]", "b", false},
	{"[^a-c]", "d", true},
	{"[]]", "]", true},
	{"[!]]", "a", true},
	{"[!]]", "]", false},
	{"[a-]", "-", true},
	{"[\\]a]", "]", true},
	{"[à-ü]", "é", true},
	{"[à-ü]", "e", false},
	{"[c-a]", "b", false},
	{"*[0-9]", "file10", true},
	{"[*]", "*", true},
	{"[*]", "a", false},
	/* a backslash */
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"\\\\", "\\", true},
	{"a\\b", "ab", true},
	/* a pattern that is refused when a rule is read still means something */
	{"[a", "[a", true},
	{"a\\", "a\\", true},
	/* dots */
	{"*", "..", false},
	{"?", ".", false},
	{"..", "..", true},
	{"**", "a/../b", false},
	{"src/**", "src/../etc", false},
	{"a/../b", "a/../b", true},
	{"*", "...", true},
	{"é", "é", true},
	{"\xff*", "\xff\xfe", true},
};

static void test_globs_match_as_documented(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(match_cases); i++) {
		if (glob_match(match_cases[i].pattern, match_cases[i].path) !=
			match_cases[i].matches) {
			fail_msg("\"%s\" on \"%s\": expected %s", match_cases[i].pattern,
				match_cases[i].path, match_cases[i].matches ? "a match" : "none");
		}
	}
}

static void test_a_pattern_may_begin_anywhere(void **state)
{
	assert_true(glob_match_anywhere("b/*", "/a/b/c"));
	assert_true(glob_match_anywhere("**/c", "/a/b/c"));
	assert_true(glob_match_anywhere("c", "/a/b/c"));
	assert_false(glob_match_anywhere("b", "/a/b/c"));
	assert_false(glob_match_anywhere("bb/*", "/a/b/c"));
}

static void test_a_flat_star_crosses_slashes(void **state)
{
	assert_true(glob_match_flat("http*", "http://example.com/x"));
	assert_true(glob_match_flat("*.c", "a/b.c"));
	assert_false(glob_match_flat("*.c", "a/b.h"));
}

static void test_patterns_are_checked(void **state)
{
	static const struct {
		const char *pattern;
		const char *mistake; // part of it; NULL: the pattern is good
	} cases[] = {
		{"/a/**/[a-z]*?", NULL},
		{"**", NULL},
		{"a", NULL},
		{"[]]", NULL},
		{"\\[a", NULL},
		{"a[b", "expected a ] after ["},
		{"a[]", "expected a ] after ["},
		{"a/[b/c]", "expected a ] after ["},
		{"a\\", "expected a character after \\"},
		{"a**", "expected ** alone between slashes, got \"a**\""},
		{"x/**.c/y", "expected ** alone between slashes, got \"**.c\""},
		{"/", "without //"},
		{"/a/", "without //"},
		{"a//b", "without //"},
		{"//a", "without //"},
		{"", "without //"},
		{"/a/../b", "without . and .. parts"},
		{"./a", "without . and .. parts"},
		{"~/a", "~ is not expanded"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err = {0};
		bool good = glob_check_path(cases[i].pattern, &err);
		assert_int_equal(good, cases[i].mistake == NULL);
		if (!good && !strstr(err.text, cases[i].mistake)) {
			fail_msg("\"%s\": %s", cases[i].pattern, err.text);
		}
	}
}

/* With exponential backtracking, this would not end within the test's time. */
static void test_hostile_patterns_end(void **state)
{
	enum { LEN = 4000 };
	char text[LEN + 1];
	char pattern[LEN + 1];
	memset(text, 'a', LEN);
	text[LEN] = '\0';
	for (size_t i = 0; i < 200; i += 2) {
		memcpy(pattern + i, "a*", 2);
	}
	memcpy(pattern + 200, "b", 2);
	assert_false(glob_match(pattern, text));
	for (size_t i = 1; i < LEN; i += 2) {
		text[i] = '/';
	}
	text[LEN - 1] = '\0';
	for (size_t i = 0; i + 5 < 500; i += 5) {
		memcpy(pattern + i, "**/a/", 5);
		pattern[i + 5] = '\0';
	}
	size_t len = strlen(pattern);
	memcpy(pattern + len, "b", 2);
	assert_false(glob_match(pattern, text));
	assert_false(glob_match_anywhere(pattern, text));
	memcpy(pattern + len, "a", 2);
	assert_true(glob_match(pattern, text));
}

/* The definition, in the slow way: matches one component with one pattern. */
static bool reference(const char *pattern, const char *text)
{
	if (!*pattern) {
		return !*text;
	}
	if (*pattern == '*') {
		return reference(pattern + 1, text) || (*text && reference(pattern, text + 1));
	}
	return *text && (*pattern == '?' || *pattern == *text) && reference(pattern + 1, text + 1);
}

static void fill(char *text, size_t max, const char *letters, unsigned *seed)
{
	size_t len = (size_t)rand_r(seed) % max;
	for (size_t i = 0; i < len; i++) {
		text[i] = letters[(size_t)rand_r(seed) % strlen(letters)];
	}
	text[len] = '\0';
}

static void test_random_patterns_match_as_the_definition_says(void **state)
{
	unsigned seed = 20260101;
	int matched = 0;
	for (int i = 0; i < 200000; i++) {
		char pattern[8];
		char text[10];
		fill(pattern, sizeof(pattern), "ab*?", &seed);
		fill(text, sizeof(text), "ab", &seed);
		bool expected = reference(pattern, text);
		matched += expected;
		if (glob_match_flat(pattern, text) != expected) {
			fail_msg("\"%s\" on \"%s\"", pattern, text);
		}
	}
	assert_true(matched > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_globs_match_as_documented),
		cmocka_unit_test(test_a_pattern_may_begin_anywhere),
		cmocka_unit_test(test_a_flat_star_crosses_slashes),
		cmocka_unit_test(test_patterns_are_checked),
		cmocka_unit_test(test_hostile_patterns_end),
		cmocka_unit_test(test_random_patterns_match_as_the_definition_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
