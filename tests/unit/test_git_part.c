/* SPDX-License-Identifier: MIT */
#include "sync/git/part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *patterns, const char *part, const char *expected)
{
	struct error err;
	struct buf buf;
	buf_init(&buf, 1000);
	assert_true(buf_append(&buf, span_of(patterns), &err));
	assert_true(part_narrow(&buf, part, &err));
	char *text = mem_strndup(buf_span(&buf));
	assert_string_equal(text, expected);
	free(text);
	buf_finish(&buf);
}

/* What git-sparse-checkout(1) writes for the folders "a/b" and "c". */
static const char cones[] = "/*\n!/*/\n/a/\n!/a/*/\n/c/\n/a/b/\n";

static void test_without_a_sparse_checkout_it_is_the_part_alone(void **state)
{
	check("", "a/b", "/a/b/\n");
}

static void test_a_part_in_a_cone_is_there_as_a_whole(void **state)
{
	check(cones, "c", "/c/\n");
	check(cones, "a/b", "/a/b/\n");
	check(cones, "a/b/d/e", "/a/b/d/e/\n");
	check("/*\n!/*/\n/a/\n!/a/*/\n/a/b/", "a/b", "/a/b/\n"); // no newline at the end
}

static void test_of_a_part_around_cones_only_these_are_there(void **state)
{
	check(cones, "a", "/a/*\n!/a/*/\n/a/b/\n");
	check("/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n!/a/b/*/\n/a/b/c/\n/ab/\n", "a",
		"/a/*\n!/a/*/\n/a/b/\n!/a/b/*/\n/a/b/c/\n");
}

static void test_of_a_part_outside_of_all_cones_nothing_is_there(void **state)
{
	check(cones, "d", "!/*\n");
	check(cones, "a/bc", "!/*\n");
	check(cones, "cc", "!/*\n");
	check("!\n\n/\n", "a", "!/*\n");
}

static void test_what_has_no_room_is_refused_and_stays(void **state)
{
	struct error err;
	struct buf buf;
	buf_init(&buf, 4);
	assert_true(buf_append(&buf, SPAN_LITERAL("/c/\n"), &err));
	assert_false(part_narrow(&buf, "c/long", &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(buf.len, 4);
	buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_sparse_checkout_it_is_the_part_alone),
		cmocka_unit_test(test_a_part_in_a_cone_is_there_as_a_whole),
		cmocka_unit_test(test_of_a_part_around_cones_only_these_are_there),
		cmocka_unit_test(test_of_a_part_outside_of_all_cones_nothing_is_there),
		cmocka_unit_test(test_what_has_no_room_is_refused_and_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
