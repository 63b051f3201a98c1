/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_check.h"
#include "base/attr.h"
#include "base/buf.h"
#include "tests/unit/json_cases.h"
#include "tests/support/facts.h"

static bool feed_and_end(struct json_check *check, const struct json_case *c, size_t piece)
{
	for (size_t at = 0; at < c->len; at += piece) {
		size_t len = c->len - at < piece ? c->len - at : piece;
		/* A copy of its own, so that the sanitizer notices a read beyond the piece. */
		char *copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, c->text + at, len);
		bool ok = json_check_feed(check, (struct span){copy, len}, NULL);
		free(copy);
		if (!ok) {
			return false;
		}
	}
	return json_check_end(check, NULL);
}

static void expect_case(
	struct json_check *check, const struct json_case *c, size_t piece, bool expected)
{
	json_check_reset(check);
	if (feed_and_end(check, c, piece) != expected) {
		fail_msg("in pieces of %zu: %s", piece, c->text);
	}
}

static void expect_verdict(const struct json_case *cases, size_t count, bool expected)
{
	struct json_check *check = json_check_create(NULL);
	for (size_t i = 0; i < count; i++) {
		for (size_t piece = 1; piece <= cases[i].len + 1; piece++) {
			expect_case(check, &cases[i], piece, expected);
		}
	}
	json_check_destroy(check);
}

static void test_everything_in_the_grammar_is_accepted(void **state)
{
	expect_verdict(accepted, ARRAY_LENGTH(accepted), true);
}

static void test_everything_else_is_refused(void **state)
{
	expect_verdict(refused, ARRAY_LENGTH(refused), false);
}

/* Checks the bytes as a string, whole and cut after each byte. */
static void expect_sequence(
	struct json_check *check, const unsigned char *inside, size_t len, bool expected)
{
	char text[8] = {'"'};
	for (size_t i = 0; i < len; i++) {
		text[1 + i] = (char)inside[i];
	}
	text[1 + len] = '"';
	struct json_case c = {text, len + 2};
	expect_case(check, &c, 1, expected);
	expect_case(check, &c, 2, expected);
	expect_case(check, &c, c.len, expected);
}

/* Every pair of first and second byte, alone and with the bytes that must follow. */
static void test_sequences_of_two_to_four_bytes_are_judged_like_rfc_3629(void **state)
{
	struct json_check *check = json_check_create(NULL);
	for (unsigned int first = 0x80; first < 0x100; first++) {
		for (unsigned int second = 0x80; second < 0x100; second++) {
			bool follows = second <= 0xbf;
			bool two = follows && first >= 0xc2 && first <= 0xdf;
			bool three = follows && first >= 0xe0 && first <= 0xef &&
			             !(first == 0xe0 && second < 0xa0) &&
			             !(first == 0xed && second > 0x9f);
			bool four = follows && first >= 0xf0 && first <= 0xf4 &&
			            !(first == 0xf0 && second < 0x90) &&
			            !(first == 0xf4 && second > 0x8f);
			unsigned char bytes[] = {
				(unsigned char)first, (unsigned char)second, 0xbf, 0x80};
			expect_sequence(check, bytes, 2, two);
			expect_sequence(check, bytes, 3, three);
			expect_sequence(check, bytes, 4, four);
		}
	}
	json_check_destroy(check);
}

/* A bad byte at each place of a long string, before, in and after its blocks. */
static void test_a_bad_byte_is_seen_anywhere_in_a_string(void **state)
{
	static const char bad[] = {'\0', '\x1f', '\n', '\x80', '\xff', '"'};
	struct json_check *check = json_check_create(NULL);
	char text[72];
	for (size_t len = 3; len <= sizeof(text); len++) {
		for (size_t at = 1; at < len - 1; at++) {
			for (size_t i = 0; i < sizeof(bad); i++) {
				memset(text, 'x', sizeof(text));
				text[0] = text[len - 1] = '"';
				text[at] = bad[i];
				struct error err;
				json_check_reset(check);
				bool ok = json_check_feed(check, (struct span){text, len}, &err);
				assert_false(ok);
				char position[32];
				snprintf(position, sizeof(position),
					"byte %zu: ", bad[i] == '"' ? at + 1 : at);
				assert_ptr_equal(strstr(err.text, position), err.text);
			}
		}
	}
	json_check_destroy(check);
}

static bool check_nested(unsigned int depth, char open, struct error *err)
{
	struct buf text;
	buf_init(&text, 4096);
	for (unsigned int i = 0; i < depth; i++) {
		struct span piece = open == '[' ? SPAN_LITERAL("[") : SPAN_LITERAL("{\"a\":");
		assert_true(buf_append(&text, piece, NULL));
	}
	assert_true(buf_append(&text, SPAN_LITERAL("1"), NULL));
	for (unsigned int i = 0; i < depth; i++) {
		struct span piece = open == '[' ? SPAN_LITERAL("]") : SPAN_LITERAL("}");
		assert_true(buf_append(&text, piece, NULL));
	}
	struct json_check *check = json_check_create(NULL);
	bool ok = json_check_feed(check, buf_span(&text), err) && json_check_end(check, err);
	json_check_destroy(check);
	buf_finish(&text);
	return ok;
}

static void test_the_deepest_level_is_accepted_and_the_next_refused(void **state)
{
	struct error err = {0};
	assert_true(check_nested(JSON_DEPTH_MAX, '[', &err));
	assert_true(check_nested(JSON_DEPTH_MAX, '{', &err));
	assert_false(check_nested(JSON_DEPTH_MAX + 1, '[', &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "byte 256: nested too deeply");
	assert_false(check_nested(JSON_DEPTH_MAX + 1, '{', &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

static void test_each_bracket_is_matched_with_its_own_kind(void **state)
{
	struct json_check *check = json_check_create(NULL);
	uint32_t random = 2463534242u;
	char text[2 * JSON_DEPTH_MAX * 5];
	char closers[JSON_DEPTH_MAX];
	for (int round = 0; round < 50; round++) {
		size_t len = 0;
		for (size_t i = 0; i < JSON_DEPTH_MAX; i++) {
			random ^= random << 13;
			random ^= random >> 17;
			random ^= random << 5;
			bool object = (random & 1) != 0;
			memcpy(text + len, object ? "{\"\":" : "[", object ? 4 : 1);
			len += object ? 4 : 1;
			closers[i] = object ? '}' : ']';
		}
		text[len++] = '0';
		for (size_t i = JSON_DEPTH_MAX; i > 0; i--) {
			text[len++] = closers[i - 1];
		}
		json_check_reset(check);
		assert_true(json_check_feed(check, (struct span){text, len}, NULL));
		assert_true(json_check_end(check, NULL));
		size_t wrong = len - 1 - random % JSON_DEPTH_MAX;
		text[wrong] = text[wrong] == ']' ? '}' : ']';
		json_check_reset(check);
		assert_false(json_check_feed(check, (struct span){text, len}, NULL));
	}
	json_check_destroy(check);
}

static void test_an_error_says_what_and_where_counted_over_all_pieces(void **state)
{
	static const struct {
		const char *text;
		const char *error;
	} cases[] = {
		{"{\"a\":1,}", "byte 7 | member | name"},
		{"[1,]", "byte 3 | value"},
		{"{\"a\" 1}", "byte 5 | colon"},
		{"[1 2]", "byte 3 | comma | array"},
		{"{\"a\":1 2}", "byte 7 | comma | object"},
		{"\"ab\x1f\"", "byte 3 | control character"},
		{"\"\\q\"", "byte 2 | bad escape"},
		{"\"\\u00x0\"", "byte 5 | \\u escape"},
		{"\"\xc3(\"", "byte 2 | UTF-8"},
		{"[01]", "byte 2 | bad number"},
		{"[tru]", "byte 4 | true | false | null"},
		{"{} {}", "byte 3 | more than one"},
		{"[1", "byte 2 | not complete"},
		{"", "byte 0 | not complete"},
	};
	struct json_check *check = json_check_create(NULL);
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		for (size_t piece = 1; piece < 10; piece++) {
			json_check_reset(check);
			struct span left = span_of(cases[i].text);
			struct error err = {0};
			bool ok = true;
			while (ok && left.len > 0) {
				size_t len = left.len < piece ? left.len : piece;
				ok = json_check_feed(check, (struct span){left.data, len}, &err);
				left = (struct span){left.data + len, left.len - len};
			}
			ok = ok && json_check_end(check, &err);
			assert_false(ok);
			assert_int_equal(err.code, ERROR_PROTOCOL);
			assert_names(err.text, cases[i].error);
		}
	}
	json_check_destroy(check);
}

static void test_a_document_is_blank_until_something_but_space_comes(void **state)
{
	struct json_check *check = json_check_create(NULL);
	assert_true(json_check_is_blank(check));
	assert_true(json_check_feed(check, SPAN_LITERAL(" \t\r\n"), NULL));
	assert_true(json_check_is_blank(check));
	assert_true(json_check_feed(check, SPAN_LITERAL("1"), NULL));
	assert_false(json_check_is_blank(check));
	json_check_reset(check);
	assert_true(json_check_is_blank(check));
	assert_false(json_check_feed(check, SPAN_LITERAL("}"), NULL));
	assert_false(json_check_is_blank(check));
	json_check_destroy(check);
}

static void test_a_checker_is_as_new_after_reset(void **state)
{
	struct json_check *check = json_check_create(NULL);
	assert_true(json_check_feed(check, SPAN_LITERAL("[{\"a\":\"\\u12"), NULL));
	json_check_reset(check);
	assert_true(json_check_feed(check, SPAN_LITERAL("{}"), NULL));
	assert_true(json_check_end(check, NULL));
	json_check_reset(check);
	assert_false(json_check_feed(check, SPAN_LITERAL("{}}"), NULL));
	json_check_reset(check);
	assert_true(json_check_feed(check, SPAN_LITERAL("12"), NULL));
	assert_true(json_check_end(check, NULL));
	json_check_destroy(check);
	json_check_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_everything_in_the_grammar_is_accepted),
		cmocka_unit_test(test_everything_else_is_refused),
		cmocka_unit_test(test_sequences_of_two_to_four_bytes_are_judged_like_rfc_3629),
		cmocka_unit_test(test_a_bad_byte_is_seen_anywhere_in_a_string),
		cmocka_unit_test(test_the_deepest_level_is_accepted_and_the_next_refused),
		cmocka_unit_test(test_each_bracket_is_matched_with_its_own_kind),
		cmocka_unit_test(test_an_error_says_what_and_where_counted_over_all_pieces),
		cmocka_unit_test(test_a_document_is_blank_until_something_but_space_comes),
		cmocka_unit_test(test_a_checker_is_as_new_after_reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
