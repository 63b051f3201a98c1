/* SPDX-License-Identifier: MIT */
#include "base/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void test_it_is_now_in_utc_with_milliseconds(void **state)
{
	char text[TIMESTAMP_SIZE];
	struct tm read = {0};
	time_t before = time(NULL);
	assert_ptr_equal(timestamp_now(text), text);
	time_t after = time(NULL);
	assert_int_equal(strlen(text), strlen("2026-01-31T12:00:00.000Z"));
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &read);
	assert_non_null(rest);
	assert_int_equal(rest[0], '.');
	assert_int_equal(strspn(rest + 1, "0123456789"), 3);
	assert_string_equal(rest + 4, "Z");
	/* The clock of time() may be one tick late. */
	assert_in_range(timegm(&read), before, after + 1);
}

/* The days around which calendars are often computed wrongly, compared with the C library. */
static void test_every_day_is_the_c_librarys(void **state)
{
	char text[TIMESTAMP_SIZE];
	char expected[TIMESTAMP_SIZE];
	for (time_t day = -400 * 366; day < 400 * 366; day++) {
		struct timespec time = {
			.tv_sec = day * 24 * 3600 + (day & 1 ? 86399 : 0), .tv_nsec = 7999999};
		struct tm utc;
		gmtime_r(&time.tv_sec, &utc);
		strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.007Z", &utc);
		assert_string_equal(timestamp_text(text, &time), expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_now_in_utc_with_milliseconds),
		cmocka_unit_test(test_every_day_is_the_c_librarys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
