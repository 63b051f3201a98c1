/* SPDX-License-Identifier: MIT */
#include "sync/stuck.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char why[] = "in the way";

static void test_what_was_added_is_found_with_its_reason(void **state)
{
	struct stuck stuck = {0};
	char path[16];
	assert_null(stuck_find(&stuck, "p1"));
	for (int i = 999; i >= 0; i--) {
		snprintf(path, sizeof(path), "p%d", i);
		stuck_add(&stuck, path, why);
	}
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "p%d", i);
		assert_ptr_equal(stuck_find(&stuck, path), why);
	}
	assert_null(stuck_find(&stuck, "p"));
	assert_null(stuck_find(&stuck, "p1000"));
	stuck_add(&stuck, "a", why);
	assert_non_null(stuck_find(&stuck, "a"));
	stuck_finish(&stuck);
	assert_int_equal(stuck.count, 0);
}

static void test_only_what_was_left_twice_is_in_both(void **state)
{
	static const char newer[] = "still in the way";
	struct stuck first = {0};
	struct stuck second = {0};
	struct stuck both;
	stuck_add(&first, "gone", why);
	stuck_add(&first, "same", why);
	stuck_add(&second, "same", newer);
	stuck_add(&second, "new", why);
	stuck_intersect(&both, &first, &second);
	assert_int_equal(both.count, 1);
	assert_ptr_equal(stuck_find(&both, "same"), newer);
	stuck_finish(&both);
	stuck_finish(&first);
	stuck_intersect(&both, &first, &second);
	assert_int_equal(both.count, 0);
	stuck_finish(&both);
	stuck_finish(&second);
}

static void test_no_more_are_remembered_than_the_limit(void **state)
{
	struct stuck stuck = {0};
	for (int i = 0; i < STUCK_MAX + 10; i++) {
		stuck_add(&stuck, "p", why);
	}
	assert_int_equal(stuck.count, STUCK_MAX);
	stuck_finish(&stuck);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_added_is_found_with_its_reason),
		cmocka_unit_test(test_only_what_was_left_twice_is_in_both),
		cmocka_unit_test(test_no_more_are_remembered_than_the_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
