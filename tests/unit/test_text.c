/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/span.h"

enum { SIZE = 16, END = SIZE - 1 };

static const char filler[] = "xxxxxxxxxxxxxxxxxxxxxxxx";

static void test_a_text_that_fits_is_whole(void **state)
{
	char text[SIZE];
	assert_true(text_format(text, sizeof(text), "%.*s", END, filler));
	assert_int_equal(strlen(text), END);
	assert_null(strstr(text, TEXT_CUT));
	assert_true(text_format(text, sizeof(text), "%s", ""));
	assert_string_equal(text, "");
}

static void test_a_text_that_is_cut_says_so(void **state)
{
	char text[SIZE];
	assert_false(text_format(text, sizeof(text), "%.*s", END + 1, filler));
	assert_string_equal(text, "xxxxxxxxxxxx" TEXT_CUT);
	assert_false(text_format(text, sizeof(text), "%s", filler));
	assert_string_equal(text, "xxxxxxxxxxxx" TEXT_CUT);
}

/* An exact amount of room may be smaller than the mark of a cut. */
static void test_a_short_text_needs_no_room_for_the_mark(void **state)
{
	char text[4] = "";
	assert_true(text_format(text, 3, "%s", "ls"));
	assert_string_equal(text, "ls");
	assert_true(text_format(text, 1, "%s", ""));
	assert_false(text_format(text, 3, "%s", "cat"));
	assert_string_equal(text, "");
}

/* A character of each length; each of its bytes may be the last one that fits. */
static void test_no_character_is_cut_in_two(void **state)
{
	static const char *const characters[] = {
		"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
	const size_t room = END - strlen(TEXT_CUT);
	for (size_t size = 1; size <= 4; size++) {
		for (size_t inside = 0; inside <= size; inside++) {
			char text[SIZE];
			assert_false(text_format(text, sizeof(text), "%.*s%s%s",
				(int)(room - inside), filler, characters[size - 1], filler));
			size_t kept = inside < size ? room - inside : room;
			assert_int_equal(strlen(text), kept + strlen(TEXT_CUT));
			assert_string_equal(text + kept, TEXT_CUT);
		}
	}
}

static void test_bytes_that_are_no_utf8_are_cut_as_well(void **state)
{
	char text[SIZE], bad[2 * SIZE];
	memset(bad, 0x80, sizeof(bad) - 1);
	bad[sizeof(bad) - 1] = '\0';
	assert_false(text_format(text, sizeof(text), "%s", bad));
	assert_int_equal(strlen(text), END);
	assert_string_equal(text + END - strlen(TEXT_CUT), TEXT_CUT);
}

static void test_more_is_put_behind_it(void **state)
{
	char text[SIZE] = "";
	assert_true(text_append(text, sizeof(text), "%s", "a"));
	assert_true(text_append(text, sizeof(text), ", %d", 12));
	assert_string_equal(text, "a, 12");
	assert_false(text_append(text, sizeof(text), "%s", filler));
	assert_string_equal(text, "a, 12xxxxxxx" TEXT_CUT);
	assert_false(text_append(text, sizeof(text), "y"));
	assert_string_equal(text, "a, 12xxxxxxx" TEXT_CUT);
}

static void test_what_is_used_is_whole_or_not_there(void **state)
{
	char name[SIZE];
	assert_true(text_whole(name, sizeof(name), "%.*s", END, filler));
	assert_int_equal(strlen(name), END);
	assert_false(text_whole(name, sizeof(name), "%.*s", END + 1, filler));
	assert_string_equal(name, "");
}

static void test_a_long_name_is_shortened(void **state)
{
	char out[TEXT_SHORT_SIZE], longer[2 * TEXT_SHORT_SIZE];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_string_equal(text_short(out, "name"), "name");
	assert_int_equal(strlen(text_short(out, longer)), TEXT_SHORT_SIZE - 1);
	assert_string_equal(out + strlen(out) - strlen(TEXT_CUT), TEXT_CUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_that_fits_is_whole),
		cmocka_unit_test(test_a_text_that_is_cut_says_so),
		cmocka_unit_test(test_a_short_text_needs_no_room_for_the_mark),
		cmocka_unit_test(test_no_character_is_cut_in_two),
		cmocka_unit_test(test_bytes_that_are_no_utf8_are_cut_as_well),
		cmocka_unit_test(test_more_is_put_behind_it),
		cmocka_unit_test(test_what_is_used_is_whole_or_not_there),
		cmocka_unit_test(test_a_long_name_is_shortened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
