/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_doc.h"
#include "base/attr.h"

/* Parses a copy, so that the sanitizer notices a read beyond the text. */
struct parsed {
	char *text;
	struct json_doc *doc;
};

static struct parsed parse(const char *text)
{
	struct parsed parsed = {.text = mem_alloc(strlen(text))};
	memcpy(parsed.text, text, strlen(text));
	struct error err;
	parsed.doc = json_doc_parse((struct span){parsed.text, strlen(text)}, &err);
	if (!parsed.doc) {
		fail_msg("%s: %s", text, err.text);
	}
	return parsed;
}

static void drop(struct parsed parsed)
{
	json_doc_destroy(parsed.doc);
	free(parsed.text);
}

static void expect_raw(const struct json_doc *doc, json_node node, const char *text)
{
	assert_int_not_equal(node, JSON_NODE_NONE);
	struct span raw = json_raw(doc, node);
	if (!span_is(raw, text)) {
		fail_msg("%.*s is not %s", (int)raw.len, raw.data, text);
	}
}

static void test_each_type_is_told_apart(void **state)
{
	static const struct {
		const char *text;
		enum json_type type;
	} cases[] = {
		{"null", JSON_NULL},
		{"true", JSON_BOOL},
		{" false\r\n", JSON_BOOL},
		{"0", JSON_NUMBER},
		{"-1.5e3", JSON_NUMBER},
		{"\"\"", JSON_STRING},
		{"\"n\"", JSON_STRING},
		{"[]", JSON_ARRAY},
		{" {\t} ", JSON_OBJECT},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct parsed parsed = parse(cases[i].text);
		for (int type = JSON_NULL; type <= JSON_OBJECT; type++) {
			assert_int_equal(json_is(parsed.doc, 0, type), type == (int)cases[i].type);
			assert_false(json_is(parsed.doc, JSON_NODE_NONE, type));
			assert_false(json_is(parsed.doc, 1, type));
		}
		assert_int_equal(json_count(parsed.doc, 0), 0);
		assert_int_equal(json_first(parsed.doc, 0), JSON_NODE_NONE);
		assert_int_equal(json_next(parsed.doc, 0), JSON_NODE_NONE);
		drop(parsed);
	}
}

static void test_members_are_found_by_name_and_path(void **state)
{
	struct parsed p =
		parse(" {\"a\" : {\"b\":{\"c\":[1,{\"c\":2}]},\"\":3}, \"b\":4,\"b\":5} ");
	expect_raw(p.doc, 0, "{\"a\" : {\"b\":{\"c\":[1,{\"c\":2}]},\"\":3}, \"b\":4,\"b\":5}");
	json_node a = json_get(p.doc, 0, "a");
	expect_raw(p.doc, json_get(p.doc, a, "b"), "{\"c\":[1,{\"c\":2}]}");
	expect_raw(p.doc, json_get(p.doc, 0, "b"), "4");
	expect_raw(p.doc, json_get(p.doc, a, ""), "3");
	expect_raw(p.doc, json_path(p.doc, 0, "a.b.c"), "[1,{\"c\":2}]");
	expect_raw(p.doc, json_path(p.doc, a, "b.c"), "[1,{\"c\":2}]");
	expect_raw(p.doc, json_path(p.doc, 0, "a."), "3");
	static const char *const absent[] = {"c", "a.c", "a.b.c.c", "b.b", "a.b.", ".a", "a.b.c.0"};
	for (size_t i = 0; i < ARRAY_LENGTH(absent); i++) {
		assert_int_equal(json_path(p.doc, 0, absent[i]), JSON_NODE_NONE);
	}
	assert_int_equal(json_get(p.doc, JSON_NODE_NONE, "a"), JSON_NODE_NONE);
	assert_int_equal(json_path(p.doc, JSON_NODE_NONE, "a.b"), JSON_NODE_NONE);
	drop(p);
}

static void test_names_are_compared_decoded(void **state)
{
	struct parsed p = parse("{\"p\\u0061th\":1,\"\\\\\":2,\"\\u00e9\":3,\"x\\u0000y\":4}");
	expect_raw(p.doc, json_get(p.doc, 0, "path"), "1");
	expect_raw(p.doc, json_get(p.doc, 0, "\\"), "2");
	expect_raw(p.doc, json_get(p.doc, 0, "\xc3\xa9"), "3");
	assert_int_equal(json_get(p.doc, 0, "x"), JSON_NODE_NONE);
	assert_int_equal(json_get(p.doc, 0, "p\\u0061th"), JSON_NODE_NONE);
	drop(p);
}

static void test_elements_are_walked_in_order(void **state)
{
	struct parsed p = parse("[ 1, [2,[3]], {\"a\":[4],\"b\":5}, [], \"6\", null ]");
	static const char *const raws[] = {
		"1", "[2,[3]]", "{\"a\":[4],\"b\":5}", "[]", "\"6\"", "null"};
	assert_int_equal(json_count(p.doc, 0), ARRAY_LENGTH(raws));
	json_node node = json_first(p.doc, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(raws); i++) {
		expect_raw(p.doc, node, raws[i]);
		assert_int_equal(json_key(p.doc, node).len, 0);
		node = json_next(p.doc, node);
	}
	assert_int_equal(node, JSON_NODE_NONE);
	assert_int_equal(json_next(p.doc, node), JSON_NODE_NONE);
	assert_int_equal(json_first(p.doc, node), JSON_NODE_NONE);
	assert_int_equal(json_count(p.doc, node), 0);
	assert_int_equal(json_raw(p.doc, node).len, 0);
	assert_int_equal(json_key(p.doc, node).len, 0);
	drop(p);
}

static void test_members_are_walked_with_their_names(void **state)
{
	struct parsed p = parse("[{\"a\":{\"x\":1},\"b\":[{}, 2],\"\\n\":\"v\"},{\"after\":1}]");
	json_node object = json_first(p.doc, 0);
	static const char *const members[][2] = {
		{"a", "{\"x\":1}"}, {"b", "[{}, 2]"}, {"\\n", "\"v\""}};
	assert_int_equal(json_count(p.doc, object), ARRAY_LENGTH(members));
	json_node node = json_first(p.doc, object);
	for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
		assert_true(span_is(json_key(p.doc, node), members[i][0]));
		expect_raw(p.doc, node, members[i][1]);
		node = json_next(p.doc, node);
	}
	assert_int_equal(node, JSON_NODE_NONE);
	drop(p);
}

static void test_values_are_read_or_the_fallback_is_taken(void **state)
{
	struct parsed p = parse("[true,false,0,-0,42,-7,9223372036854775807,-9223372036854775808,"
				"9223372036854775808,-9223372036854775809,1.0,1e2,\"1\",null]");
	static const long long ints[] = {
		-1, -1, 0, 0, 42, -7, LLONG_MAX, LLONG_MIN, -1, -1, -1, -1, -1, -1};
	json_node node = json_first(p.doc, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(ints); i++) {
		assert_true(json_int(p.doc, node, -1) == ints[i]);
		assert_int_equal(json_bool(p.doc, node, true), i != 1);
		assert_int_equal(json_bool(p.doc, node, false), i == 0);
		node = json_next(p.doc, node);
	}
	assert_true(json_int(p.doc, JSON_NODE_NONE, 5) == 5);
	assert_true(json_bool(p.doc, JSON_NODE_NONE, true));
	drop(p);
}

static void test_strings_are_decoded(void **state)
{
	struct parsed p = parse("[\"\",\"plain\",\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\",\"\\u0041\\u00e9"
				"\\u4f60\\ud83d\\ude00\",\"\xe4\xbd\xa0\",\"a\\u0000b\",7]");
	static const char *const texts[] = {"", "plain", "a\"\\/\b\f\n\r\tz",
		"A\xc3\xa9\xe4\xbd\xa0\xf0\x9f\x98\x80", "\xe4\xbd\xa0", NULL, NULL};
	json_node node = json_first(p.doc, 0);
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		char *text = json_string(p.doc, node);
		assert_int_equal(text != NULL, texts[i] != NULL);
		if (text) {
			assert_string_equal(text, texts[i]);
			assert_true(json_string_is(p.doc, node, texts[i]));
			assert_false(json_string_is(p.doc, node, "other"));
		}
		free(text);
		node = json_next(p.doc, node);
	}
	assert_null(json_string(p.doc, JSON_NODE_NONE));
	assert_false(json_string_is(p.doc, JSON_NODE_NONE, ""));
	drop(p);
}

static void test_a_lone_surrogate_is_decoded_as_the_replacement(void **state)
{
	static const char *const cases[][2] = {
		{"\"\\ud83d\"", "\xef\xbf\xbd"},
		{"\"\\ude00\"", "\xef\xbf\xbd"},
		{"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
		{"\"\\ud83dx\\ude00\"", "\xef\xbf\xbdx\xef\xbf\xbd"},
		{"\"\\ud83d\\n\"", "\xef\xbf\xbd\n"},
		{"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
				       "A"},
		{"\"\\ud836\\udc00\"", "\xf0\x9d\xa0\x80"},
		{"\"\\uD7FF\\uE000\"", "\xed\x9f\xbf\xee\x80\x80"},
		{"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct buf out;
		buf_init(&out, 64);
		assert_true(buf_append(&out, SPAN_LITERAL(">"), NULL));
		assert_true(json_decode_string(span_of(cases[i][0]), &out, NULL));
		buf_consume(&out, 1);
		assert_true(span_is(buf_span(&out), cases[i][1]));
		buf_finish(&out);
	}
}

/*
 * The parser copies text in blocks of sixteen bytes; it must notice an escape at each place, even
 * near the end.
 */
static void test_an_escape_is_decoded_wherever_it_stands(void **state)
{
	static const char *const escapes[][2] = {{"\\n", "\n"}, {"\\\\", "\\"},
		{"\\u00e9", "\xc3\xa9"}, {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"}};
	for (size_t i = 0; i < ARRAY_LENGTH(escapes) * 40 * 40; i++) {
		const char *const *escape = escapes[i % ARRAY_LENGTH(escapes)];
		int before = (int)(i / ARRAY_LENGTH(escapes) % 40);
		int after = (int)(i / ARRAY_LENGTH(escapes) / 40);
		char raw[128], text[128];
		snprintf(
			raw, sizeof(raw), "\"%0*d%s%0*d\"", before + 1, 0, escape[0], after + 1, 0);
		snprintf(text, sizeof(text), "%0*d%s%0*d", before + 1, 0, escape[1], after + 1, 0);
		for (size_t room = 0; room < 3; room++) { // one byte too few, enough, and more
			struct buf out;
			struct error err;
			buf_init(&out, strlen(text) - 1 + room * room);
			assert_int_equal(json_decode_checked(span_of(raw), &out, &err), room > 0);
			assert_true(room == 0 || span_is(buf_span(&out), text));
			buf_finish(&out);
		}
	}
}

static void test_what_is_no_string_is_not_decoded(void **state)
{
	static const char *const cases[] = {"", "\"", "a", "1", "\"a", "a\"", "\"a\"b\"", "\"\\\"",
		"\"\\x\"", "\"\n\"", "\"\xff\"", "\"\\u12\"", " \"a\"", "\"a\" ", "\"\\ud83d\\u\"",
		"[\"a\"]", "null"};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct buf out;
		buf_init(&out, 64);
		struct error err = {0};
		bool ok = json_decode_string(span_of(cases[i]), &out, &err);
		assert_false(ok);
		assert_int_equal(err.code, ERROR_PROTOCOL);
		assert_int_equal(out.len, 0);
		buf_finish(&out);
	}
}

static void test_a_decoded_string_fits_to_the_byte_or_not_at_all(void **state)
{
	for (size_t max = 3; max <= 5; max++) {
		struct buf out;
		buf_init(&out, max);
		struct error err = {0};
		bool ok = json_decode_string(SPAN_LITERAL("\"\\u4f60\\n\""), &out, &err);
		assert_int_equal(ok, max >= 4);
		assert_int_equal(out.len, ok ? 4 : 0);
		assert_true(ok || err.code == ERROR_LIMIT);
		buf_finish(&out);
	}
}

static void test_what_is_no_json_is_refused(void **state)
{
	static const char *const cases[] = {"", " ", "{", "[1 2]", "{\"a\":1,}", "{\"a\"}", "[01]",
		"{} {}", "nul", "\"\xff\"", "\"\x01\""};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err = {0};
		assert_null(json_doc_parse(span_of(cases[i]), &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
	}
}

static void test_the_number_of_tokens_is_limited(void **state)
{
	for (size_t count = JSON_DOC_TOKENS_MAX - 2; count <= JSON_DOC_TOKENS_MAX; count++) {
		struct buf text;
		buf_init(&text, (size_t)4 * JSON_DOC_TOKENS_MAX);
		assert_true(buf_append(&text, SPAN_LITERAL("[0"), NULL));
		for (size_t i = 1; i < count; i++) {
			assert_true(buf_append(&text, SPAN_LITERAL(",0"), NULL));
		}
		assert_true(buf_append(&text, SPAN_LITERAL("]"), NULL));
		struct error err = {0};
		struct json_doc *doc = json_doc_parse(buf_span(&text), &err);
		bool fits = count + 1 <= JSON_DOC_TOKENS_MAX;
		assert_int_equal(doc != NULL, fits);
		assert_int_equal(json_count(doc, fits ? 0 : JSON_NODE_NONE), fits ? count : 0);
		assert_int_equal(err.code, fits ? ERROR_NONE : ERROR_LIMIT);
		json_doc_destroy(doc);
		buf_finish(&text);
	}
}

static void test_the_tokens_grow_at_any_place_of_a_document(void **state)
{
	/* With each length of the array in front, the array after it grows at another place. */
	for (size_t front = 0; front < 140; front++) {
		struct buf text;
		buf_init(&text, 4096);
		assert_true(buf_append(&text, SPAN_LITERAL("{\"front\":["), NULL));
		for (size_t i = 0; i < front; i++) {
			assert_true(buf_append(&text, SPAN_LITERAL("1,"), NULL));
		}
		assert_true(buf_append(&text,
			SPAN_LITERAL("0],\"a\":{\"b\":[{\"c\":\"x\"},true]},\"d\":{}}"), NULL));
		struct json_doc *doc = json_doc_parse_unchecked(buf_span(&text), NULL);
		assert_non_null(doc);
		assert_int_equal(json_count(doc, 0), 3);
		assert_int_equal(json_count(doc, json_get(doc, 0, "front")), front + 1);
		expect_raw(doc, json_path(doc, 0, "a.b"), "[{\"c\":\"x\"},true]");
		expect_raw(doc, json_get(doc, 0, "d"), "{}");
		json_doc_destroy(doc);
		buf_finish(&text);
	}
	json_doc_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type_is_told_apart),
		cmocka_unit_test(test_members_are_found_by_name_and_path),
		cmocka_unit_test(test_names_are_compared_decoded),
		cmocka_unit_test(test_elements_are_walked_in_order),
		cmocka_unit_test(test_members_are_walked_with_their_names),
		cmocka_unit_test(test_values_are_read_or_the_fallback_is_taken),
		cmocka_unit_test(test_strings_are_decoded),
		cmocka_unit_test(test_a_lone_surrogate_is_decoded_as_the_replacement),
		cmocka_unit_test(test_an_escape_is_decoded_wherever_it_stands),
		cmocka_unit_test(test_what_is_no_string_is_not_decoded),
		cmocka_unit_test(test_a_decoded_string_fits_to_the_byte_or_not_at_all),
		cmocka_unit_test(test_what_is_no_json_is_refused),
		cmocka_unit_test(test_the_number_of_tokens_is_limited),
		cmocka_unit_test(test_the_tokens_grow_at_any_place_of_a_document),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
