/* SPDX-License-Identifier: MIT */
#include "base/user_repository.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];

static void run(const char *words)
{
	char command[400];
	snprintf(command, sizeof(command), "cd '%s' && %s", folder, words);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): a test's own
}

static int set_up(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/test-user-repository-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	run("rm -rf \"$PWD\"");
	return 0;
}

static const char *place_of(const char *path)
{
	static char place[REPOSITORY_PLACE_MAX];
	char whole[PATH_MAX];
	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	user_repository_place(whole, place);
	return place;
}

static void test_a_part_lies_below_a_place_for_its_repository(void **state)
{
	run("mkdir -p proj/.git 'proj/services/my api' && touch proj/.git/HEAD");
	assert_string_equal(place_of("proj/services/my api"), "proj/services/my api");
	assert_string_equal(place_of("proj/services"), "proj/services");
	assert_string_equal(place_of("proj"), "");  // the top
	assert_string_equal(place_of("other"), ""); // in none
	run("mv proj 'a*b'");
	assert_string_equal(place_of("a*b/services"), "repository/services");
	assert_string_equal(place_of("a*b/services/it's"), "");
	assert_string_equal(place_of("a*b/.config/x"), "");
}

static void test_a_place_has_two_plain_names_or_more(void **state)
{
	static const char *const good[] = {"a/b", "a/b/c", "A_1/b-c/d.e/\xc3\xa4 x"};
	static const char *const bad[] = {"", "a", "/a/b", "a/b/", "a//b", "a/../b", "a/.git",
		".a/b", "a/-b", "a/b ", " a/b", "a/b\n", "a/b*", "a/b[c]", "a/b\\c", "a/$b",
		"a/b'c"};
	char much[REPOSITORY_PLACE_MAX + 8] = "a/";
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(user_repository_is_place(good[i]));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_false(user_repository_is_place(bad[i]));
	}
	memset(much + 2, 'b', REPOSITORY_PLACE_MAX - 2);
	assert_false(user_repository_is_place(much));
	much[REPOSITORY_PLACE_MAX - 1] = '\0';
	assert_true(user_repository_is_place(much));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_part_lies_below_a_place_for_its_repository, set_up, tear_down),
		cmocka_unit_test(test_a_place_has_two_plain_names_or_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
