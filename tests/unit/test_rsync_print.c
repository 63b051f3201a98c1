/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sync/rsync/print.h"

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define BOOT "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
#define TIME "10:11:12.000400000"

/* The report of the script, as literals with NULs in between. */
#define ANSWER(sum, boot, newest, time, now, up, end)                                              \
	sum "\0" boot "\0" newest "\0" time "\0" now "\0" up "\0" end "\0"
#define READ(print, answer)                                                                        \
	print_read(print, (struct span){answer, sizeof(answer) - 1}, &(struct span){0})

static void test_an_answer_is_read(void **state)
{
	struct print print;
	assert_true(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "end")));
	assert_string_equal(print.sum, SUM);
	assert_string_equal(print.boot, BOOT);
	assert_int_equal(print.newest, 1000);
	assert_int_equal(print.now, 2000);
	assert_int_equal(print.since_boot, 500);
	assert_true(print.is_fine);
}

static void test_what_differs_stands_behind_it(void **state)
{
	static const char answer[] =
		ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "differs\0./a\0end");
	struct print print;
	struct span more;
	assert_true(print_read(&print, (struct span){answer, sizeof(answer) - 1}, &more));
	assert_int_equal(print.since_boot, 500);
	assert_int_equal(more.len, sizeof("differs\0./a"));
	assert_memory_equal(more.data, "differs\0./a", more.len);
}

static void test_what_is_no_answer_is_refused(void **state)
{
	struct print print;
	assert_false(print_read(&print, (struct span){"", 0}, &(struct span){0}));
	assert_false(READ(&print, SUM));
	assert_false(READ(&print, ANSWER("", BOOT, "1000", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM "0", BOOT, "1000", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, "", "1000", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, "not a boot", "1000", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "-1", TIME, "2000", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000x", "500", "end")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "", "end")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "en")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "end\0more")));
	assert_false(READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "more\0 end")));
	assert_false(READ(&print, SUM "\0" BOOT "\0"));
}

static struct print made(const char *newest_time, long long newest, long long now)
{
	struct print print;
	bool is_read = READ(&print, ANSWER(SUM, BOOT, "1000", TIME, "2000", "500", "end"));
	assert_true(is_read);
	print.is_fine = newest_time == NULL;
	print.newest = newest;
	print.now = now;
	return print;
}

static void test_only_a_look_long_after_the_last_change_is_settled(void **state)
{
	struct print print = made(NULL, 1000, 1000 + PRINT_SETTLED_S);
	assert_true(print_is_settled(&print));
	print = made(NULL, 1000, 1000 + PRINT_SETTLED_S - 1);
	assert_false(print_is_settled(&print));
	print = made(NULL, 3000, 2000); // the clock was set back, or is another machine's
	assert_false(print_is_settled(&print));
	print = made("coarse", 1000, 2000);
	assert_false(print_is_settled(&print));
}

static void test_times_of_whole_seconds_are_seen(void **state)
{
	static const char *const coarse[] = {"10:11:12", "10:11:12.000000000", "-", ""};
	struct print print;
	for (size_t i = 0; i < sizeof(coarse) / sizeof(coarse[0]); i++) {
		char answer[256];
		int length = snprintf(answer, sizeof(answer), "%s%c%s%c1000%c%s%c2000%c500%cend%c",
			SUM, 0, BOOT, 0, 0, coarse[i], 0, 0, 0, 0);
		struct span more;
		assert_true(print_read(&print, (struct span){answer, (size_t)length}, &more));
		assert_int_equal(more.len, 0);
		assert_false(print.is_fine);
	}
}

static void test_a_clock_that_was_set_is_not_believed(void **state)
{
	struct print before = made(NULL, 1000, 2000), after = made(NULL, 1000, 2060);
	after.since_boot += 60;
	assert_true(print_is_same(&before, &after));
	after.now += PRINT_CLOCK_S; // both clocks are read in whole seconds
	assert_true(print_is_same(&before, &after));
	after.now += 1;
	assert_false(print_is_same(&before, &after));
	after = before;
	after.now -= 1;
	assert_false(print_is_same(&before, &after));
}

static void test_another_tree_or_boot_is_not_the_same(void **state)
{
	struct print before = made(NULL, 1000, 2000), after = before;
	assert_true(print_is_same(&before, &after));
	memcpy(after.sum, OTHER, sizeof(after.sum));
	assert_false(print_is_same(&before, &after));
	after = before;
	after.boot[0] = '2';
	assert_false(print_is_same(&before, &after));
}

static void test_a_line_holds_all_of_it(void **state)
{
	struct print before = made(NULL, 1000, 2000), after;
	char line[PRINT_TEXT_MAX], longer[PRINT_TEXT_MAX + 2];
	print_format(&before, line);
	assert_true(print_parse(&after, line));
	assert_true(print_is_same(&before, &after));
	assert_int_equal(after.newest, before.newest);
	snprintf(longer, sizeof(longer), "%s.", line);
	assert_false(print_parse(&after, longer));
	for (size_t length = 0; length < strlen(line) - 3; length++) { // without the last number
		snprintf(longer, sizeof(longer), "%.*s", (int)length, line);
		assert_false(print_parse(&after, longer));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_answer_is_read),
		cmocka_unit_test(test_what_differs_stands_behind_it),
		cmocka_unit_test(test_what_is_no_answer_is_refused),
		cmocka_unit_test(test_only_a_look_long_after_the_last_change_is_settled),
		cmocka_unit_test(test_times_of_whole_seconds_are_seen),
		cmocka_unit_test(test_a_clock_that_was_set_is_not_believed),
		cmocka_unit_test(test_another_tree_or_boot_is_not_the_same),
		cmocka_unit_test(test_a_line_holds_all_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
