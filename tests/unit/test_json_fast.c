/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/json_fast.h"
#include "tests/unit/json_cases.h"

/*
 * Each kind of vector instructions must do what the plain loops do: the same verdict, the same
 * words at the same byte, the same hits. test_json_check.c shows that the plain loops are right.
 */
enum { TEXT_MAX = 4096, OFFSETS = 2 * JSON_FAST_BLOCK + 2 };

static const struct json_place table[] = {
	{0, "a", 0},
	{1, "b.a", JSON_PLACE_KEEP},
	{2, "b.b[].a", 0},
	{3, "[].a", 0},
};

struct text {
	char bytes[TEXT_MAX];
	size_t len;
};

static void add(struct text *text, const char *bytes, size_t len)
{
	assert_true(text->len + len <= TEXT_MAX);
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
}

static void add_all(struct text *text, const char *string)
{
	add(text, string, strlen(string));
}

static void add_many(struct text *text, char byte, size_t count)
{
	while (count-- > 0) {
		add(text, &byte, 1);
	}
}

struct kinds {
	struct json_places *places;
	size_t count;
	struct json_check *checks[JSON_FAST_MAX]; // the plain one first
};

static int make_kinds(void **state)
{
	static struct kinds kinds;
	const struct json_fast *list[JSON_FAST_MAX];
	kinds.places = json_places_create(table, ARRAY_LENGTH(table));
	kinds.count = json_fast_list(list);
	for (size_t i = 0; i < kinds.count; i++) {
		kinds.checks[i] = json_check_create(kinds.places);
		kinds.checks[i]->fast = list[i];
	}
	*state = &kinds;
	return 0;
}

static int remove_kinds(void **state)
{
	struct kinds *kinds = *state;
	for (size_t i = 0; i < kinds->count; i++) {
		json_check_destroy(kinds->checks[i]);
	}
	json_places_destroy(kinds->places);
	return 0;
}

static bool feed(struct json_check *check, const struct text *text, size_t piece, struct error *err)
{
	json_check_reset(check);
	for (size_t at = 0; at < text->len; at += piece) {
		size_t len = text->len - at < piece ? text->len - at : piece;
		/* A copy of its own, so that a read beyond the piece is seen. */
		char *copy = mem_alloc(len);
		memcpy(copy, text->bytes + at, len);
		bool ok = json_check_feed(check, (struct span){copy, len}, err);
		free(copy);
		if (!ok) {
			return false;
		}
	}
	return json_check_end(check, err);
}

static void expect_same_hits(const struct json_check *a, const struct json_check *b)
{
	assert_int_equal(json_check_hit_count(a), json_check_hit_count(b));
	for (size_t i = 0; i < json_check_hit_count(a); i++) {
		const struct json_hit *one = &json_check_hits(a)[i];
		const struct json_hit *other = &json_check_hits(b)[i];
		assert_int_equal(one->start, other->start);
		assert_int_equal(one->end, other->end);
		assert_int_equal(one->place, other->place);
		assert_int_equal(one->depth, other->depth);
	}
}

/* Checks the text whole and in pieces; returns the verdict. */
static bool expect_the_same(const struct kinds *kinds, const struct text *text)
{
	struct error plain = {0};
	bool verdict = feed(kinds->checks[0], text, TEXT_MAX, &plain);
	const size_t pieces[] = {TEXT_MAX, JSON_FAST_BLOCK + 1, 3 * JSON_FAST_BLOCK};
	for (size_t i = 1; i < kinds->count; i++) {
		for (size_t j = 0; j < ARRAY_LENGTH(pieces); j++) {
			struct error err = {0};
			assert_int_equal(feed(kinds->checks[i], text, pieces[j], &err), verdict);
			assert_string_equal(err.text, plain.text);
			assert_int_equal(err.code, plain.code);
			expect_same_hits(kinds->checks[i], kinds->checks[0]);
		}
	}
	return verdict;
}

static void add_tail(struct text *text)
{
	add_all(text, ",{\"name\":[\"");
	add_many(text, 'y', JSON_FAST_BLOCK);
	add_all(text, "\\n\",-1.5e3,true,{}]},");
	add_many(text, '7', 2 * JSON_FAST_BLOCK);
	add_all(text, "]}");
}

static void expect_cases(
	const struct kinds *kinds, const struct json_case *cases, size_t count, size_t offset)
{
	for (size_t i = 0; i < count; i++) {
		struct text text = {.len = 0};
		add_all(&text, "{\"k\":[\"");
		add_many(&text, 'x', offset);
		add_all(&text, "\",");
		add(&text, cases[i].text, cases[i].len);
		add_tail(&text);
		bool verdict = expect_the_same(kinds, &text);
		assert_true(verdict || cases == refused);
	}
}

static void test_each_case_at_each_place_of_a_block(void **state)
{
	for (size_t offset = 0; offset < OFFSETS; offset++) {
		expect_cases(*state, accepted, ARRAY_LENGTH(accepted), offset);
		expect_cases(*state, refused, ARRAY_LENGTH(refused), offset);
	}
}

/* Rows of backslashes of each length, at each place, before a quote and before a letter. */
static void test_rows_of_backslashes(void **state)
{
	for (size_t offset = 0; offset < OFFSETS; offset++) {
		for (size_t row = 0; row <= JSON_FAST_BLOCK + 2; row++) {
			struct text text = {.len = 0};
			add_all(&text, "{\"k\":[\"");
			add_many(&text, 'x', offset);
			add_many(&text, '\\', row);
			add_all(&text, "n\"");
			add_tail(&text);
			assert_true(expect_the_same(*state, &text));
			text.bytes[strlen("{\"k\":[\"") + offset + row] = '"';
			text.bytes[strlen("{\"k\":[\"") + offset + row + 1] = ' ';
			assert_int_equal(expect_the_same(*state, &text), row % 2 == 0);
		}
	}
}

static size_t below(uint64_t *seed, size_t limit)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (size_t)(*seed >> 33) % limit;
}

/* Characters of one to four bytes, in strings and names. */
static void add_characters(struct text *text, uint64_t *seed)
{
	static const char *const characters[] = {"a", "\\n", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80",
		"\xe2\x82\xac", "\xed\x9f\xbf", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
		"\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"};
	size_t first = below(seed, ARRAY_LENGTH(characters));
	size_t kinds = 1 + below(seed, ARRAY_LENGTH(characters) - first);
	for (size_t count = below(seed, 150); count > 0; count--) {
		add_all(text, characters[first + below(seed, kinds)]);
	}
}

/* Bytes where a rule of UTF-8 or of JSON strings begins or ceases to hold. */
static const unsigned char edges[] = {'a', '"', '\\', '\n', 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
	0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff};

/* Each text is checked as it is, and with one byte that may make it malformed. */
static void test_random_characters(void **state)
{
	uint64_t seed = 1;
	for (int round = 0; round < 3000; round++) {
		struct text text = {.len = 0};
		add_all(&text, round % 2 == 0 ? "{\"k\":[\"" : "{\"a\":\"");
		add_many(&text, 'x', below(&seed, JSON_FAST_BLOCK));
		add_characters(&text, &seed);
		add_all(&text, round % 2 == 0 ? "\",{\"" : "\",\"");
		add_characters(&text, &seed);
		add_all(&text, round % 2 == 0 ? "\":1}]}" : "\":1}");
		add_many(&text, ' ', below(&seed, 2 * JSON_FAST_BLOCK));
		assert_true(expect_the_same(*state, &text));
		text.bytes[below(&seed, text.len)] = (char)edges[below(&seed, sizeof(edges))];
		(void)expect_the_same(*state, &text);
	}
}

/* Every two of these bytes, at the end of a block and near it, between whole characters. */
static void test_two_bytes_between_characters(void **state)
{
	for (unsigned int i = 0; i < sizeof(edges) * sizeof(edges) * 16; i++) {
		struct text text = {.len = 0};
		const char bytes[] = {
			(char)edges[i / 16 / sizeof(edges)], (char)edges[i / 16 % sizeof(edges)]};
		add_all(&text, "{\"k\":[\"");
		add_many(&text, 'x', JSON_FAST_BLOCK - 16 + i % 16);
		add_all(&text, "\xe2\x82\xac\xf0\x9f\x98\x80");
		add(&text, bytes, sizeof(bytes));
		add_all(&text, "\x80\xc3\xa9");
		add_many(&text, 'y', JSON_FAST_BLOCK);
		add_all(&text, "\"]}");
		(void)expect_the_same(*state, &text);
	}
}

static void test_levels_to_the_limit(void **state)
{
	for (size_t depth = JSON_DEPTH_MAX - 2; depth <= JSON_DEPTH_MAX + 1; depth++) {
		for (size_t kind = 0; kind < 2; kind++) {
			struct text text = {.len = 0};
			for (size_t i = 0; i < depth; i++) {
				add_all(&text, kind == 0 ? "[" : "{\"a\":");
			}
			add_all(&text, kind == 0 ? "" : "0");
			add_many(&text, kind == 0 ? ']' : '}', depth);
			assert_int_equal(expect_the_same(*state, &text), depth <= JSON_DEPTH_MAX);
		}
	}
}

/*
 * Documents of random parts: most are wrong somewhere, and known places are mixed with unknown
 * ones.
 */
static void test_random_documents(void **state)
{
	static const char *const parts[] = {"{", "}", "[", "]", ",", ":",
		"\"a\":", "\"b\":", "\"c\":", "\"a\"", "1", "-0.5e+7", "true", "null", " ",
		"\"\\u0061\":", "\"\\\\\"", "{\"a\":1}", "[{\"a\":[2]}]",
		"{\"b\":{\"b\":[{\"a\":3}]}}", "\"\xc3\xa9\"", "\n\t",
		"\"a long string, so that a block holds no more than this one and its end\""};
	uint64_t seed = 1;
	for (int round = 0; round < 20000; round++) {
		struct text text = {.len = 0};
		add_all(&text, round % 2 == 0 ? "{\"b\":" : "[");
		for (int i = 0; i < 40; i++) {
			add_all(&text, parts[below(&seed, ARRAY_LENGTH(parts))]);
			add_all(&text, round % 4 < 2 && i % 2 == 0 ? "," : "");
		}
		add_many(&text, ' ', JSON_FAST_BLOCK);
		(void)expect_the_same(*state, &text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_case_at_each_place_of_a_block),
		cmocka_unit_test(test_rows_of_backslashes),
		cmocka_unit_test(test_random_characters),
		cmocka_unit_test(test_two_bytes_between_characters),
		cmocka_unit_test(test_levels_to_the_limit),
		cmocka_unit_test(test_random_documents),
	};
	return cmocka_run_group_tests(tests, make_kinds, remove_kinds);
}
