/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/utf8.h"

/* The bytes of a code point, without a check whether it is valid. */
static struct span encode(unsigned int point, char out[4])
{
	if (point < 0x80) {
		out[0] = (char)point;
		return (struct span){out, 1};
	}
	size_t len = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
	for (size_t i = len; i-- > 1;) {
		out[i] = (char)(0x80 | (point & 0x3f));
		point >>= 6;
	}
	out[0] = (char)(marks[len] | point);
	return (struct span){out, len};
}

static void test_every_code_point_is_a_character_but_surrogates(void **state)
{
	char bytes[4];
	for (unsigned int point = 0; point < 0x140000; point++) {
		struct span text = encode(point, bytes);
		bool good = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
		if (utf8_char_length(text) != (good ? text.len : 0)) {
			fail_msg("code point U+%04X", point);
		}
	}
}

/* Counts the well-formed sequences among all possible ones: these are the code points. */
static void test_no_other_bytes_are_a_character(void **state)
{
	size_t counts[5] = {0};
	for (unsigned int first = 0; first < 256; first++) {
		for (unsigned int second = 0; second < 256; second++) {
			char bytes[4] = {(char)first, (char)second, (char)0xbf, (char)0x80};
			counts[utf8_char_length((struct span){bytes, 4})]++;
		}
	}
	assert_int_equal(counts[1], 128 * 256);
	assert_int_equal(counts[2], 30 * 64);
	assert_int_equal(counts[3], 32 + 12 * 64 + 32 + 2 * 64);
	assert_int_equal(counts[4], 48 + 3 * 64 + 16);
}

static void test_character_cut_short_or_broken_is_none(void **state)
{
	static const struct span bad[] = {
		{NULL, 0},
		SPAN_LITERAL("\xc3"),
		SPAN_LITERAL("\xc3"
			     "a"),
		SPAN_LITERAL("\xe2\x82"),
		SPAN_LITERAL("\xe2\x82"
			     "a"),
		SPAN_LITERAL("\xf0\x9f\x98"),
		SPAN_LITERAL("\xf0\x9f\x98\xc0"),
		SPAN_LITERAL("\x80"),
		SPAN_LITERAL("\xc0\x80"),
		SPAN_LITERAL("\xff\xff\xff\xff"),
	};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		assert_int_equal(utf8_char_length(bad[i]), 0);
	}
}

static void test_only_a_character_cut_short_at_the_end_is_left_out(void **state)
{
	static const struct {
		struct span text;
		size_t whole;
	} cases[] = {
		{{NULL, 0}, 0},
		{SPAN_LITERAL("ab"), 2},
		{SPAN_LITERAL("a\xc3\xa4"), 3},
		{SPAN_LITERAL("a\xc3"), 1},
		{SPAN_LITERAL("\xc3"), 0},
		{SPAN_LITERAL("a\xe2\x82\xac"), 4},
		{SPAN_LITERAL("a\xe2\x82"), 1},
		{SPAN_LITERAL("a\xe2"), 1},
		{SPAN_LITERAL("a\xf0\x9f\x98\x80"), 5},
		{SPAN_LITERAL("a\xf0\x9f\x98"), 1},
		{SPAN_LITERAL("a\xf0\x9f"), 1},
		{SPAN_LITERAL("a\xf0"), 1},
		{SPAN_LITERAL("a\x80\x80"), 3}, // stray bytes are not cut characters
		{SPAN_LITERAL("\x80\x80\x80\x80"), 4},
		{SPAN_LITERAL("a\xff"), 2},
		{SPAN_LITERAL("a\xe0\x80"), 3}, // no character begins like this
		{SPAN_LITERAL("a\xc3\xa4\x80"), 4},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_int_equal(utf8_whole_length(cases[i].text), cases[i].whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_code_point_is_a_character_but_surrogates),
		cmocka_unit_test(test_no_other_bytes_are_a_character),
		cmocka_unit_test(test_character_cut_short_or_broken_is_none),
		cmocka_unit_test(test_only_a_character_cut_short_at_the_end_is_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
