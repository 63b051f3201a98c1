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
#include "tests/support/facts.h"

enum { ID, METHOD, PARAMS, CWD, LOCATION, CELL, TEXT, ROOT = 255 };

static const struct json_place table[] = {
	{ID, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{METHOD, "method", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{PARAMS, "params", JSON_PLACE_ONCE},
	{CWD, "params.cwd", 0},
	{LOCATION, "params.update.locations[].path", 0},
	{CELL, "params.grid[][].x", 0},
	{TEXT, "params.\xc3\xa9\xf0\x9f\x98\x80", 0},
	{ROOT, "", 0},
};

struct fixture {
	struct json_places *places;
	struct json_check *check;
};

static int set_up(void **state)
{
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	fixture->places = json_places_create(table, ARRAY_LENGTH(table));
	fixture->check = json_check_create(fixture->places);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	json_check_destroy(fixture->check);
	json_places_destroy(fixture->places);
	free(fixture);
	return 0;
}

static bool feed_in_pieces(struct json_check *check, const char *text, size_t piece)
{
	json_check_reset(check);
	struct span left = span_of(text);
	while (left.len > 0) {
		size_t len = left.len < piece ? left.len : piece;
		char *copy = mem_strndup((struct span){left.data, len});
		bool ok = json_check_feed(check, (struct span){copy, len}, NULL);
		free(copy);
		if (!ok) {
			return false;
		}
		left = (struct span){left.data + len, left.len - len};
	}
	return json_check_end(check, NULL);
}

struct expected_hit {
	int place;
	const char *value;
};

/* The hits of a document, in order, for every way of cutting it; the root's own hit comes last. */
static void expect_hits(
	struct json_check *check, const char *text, const struct expected_hit *hits, size_t count)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		assert_true(feed_in_pieces(check, text, piece));
		assert_int_equal(json_check_hit_count(check), count + 1);
		const struct json_hit *hit = json_check_hits(check);
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(hit[i].place, hits[i].place);
			struct span value = {text + hit[i].start, hit[i].end - hit[i].start};
			assert_true(span_is(value, hits[i].value));
		}
		assert_int_equal(hit[count].place, ROOT);
		assert_int_equal(hit[count].depth, 0);
	}
}

#define EXPECT_HITS(state, text, ...)                                                              \
	do {                                                                                       \
		const struct expected_hit list[] = {__VA_ARGS__};                                  \
		struct fixture *fixture = *(state);                                                \
		expect_hits(fixture->check, text, list, ARRAY_LENGTH(list));                       \
	} while (0)

static void test_values_of_every_type_are_found(void **state)
{
	EXPECT_HITS(state, "{\"id\":7,\"method\":\"a\"}", {ID, "7"}, {METHOD, "\"a\""});
	EXPECT_HITS(state, " { \"id\" : -1.5e3 } ", {ID, "-1.5e3"});
	EXPECT_HITS(state, "{\"id\":null}", {ID, "null"});
	EXPECT_HITS(state, "{\"id\":{\"id\":[1]} }", {ID, "{\"id\":[1]}"});
	EXPECT_HITS(state, "{\"id\":[]}", {ID, "[]"});
	EXPECT_HITS(state, "{\"id\":\"\\u0041\xc3\xa9\"}", {ID, "\"\\u0041\xc3\xa9\""});
}

static void test_hits_come_in_the_order_in_which_their_values_end(void **state)
{
	EXPECT_HITS(state, "{\"params\":{\"cwd\":\"/\"},\"id\":true}", {CWD, "\"/\""},
		{PARAMS, "{\"cwd\":\"/\"}"}, {ID, "true"});
}

static void test_elements_are_stepped_into(void **state)
{
	EXPECT_HITS(state,
		"{\"params\":{\"update\":{\"locations\":[{\"path\":\"a\"},3,[{\"path\":0}],"
		"{\"line\":1,\"path\":\"b\"}]}}}",
		{LOCATION, "\"a\""}, {LOCATION, "\"b\""},
		{PARAMS, "{\"update\":{\"locations\":[{\"path\":\"a\"},3,[{\"path\":0}],"
			 "{\"line\":1,\"path\":\"b\"}]}}"});
	EXPECT_HITS(state, "{\"params\":{\"grid\":[[{\"x\":1}],{\"x\":2},[],[{\"x\":3},{}]]}}",
		{CELL, "1"}, {CELL, "3"},
		{PARAMS, "{\"grid\":[[{\"x\":1}],{\"x\":2},[],[{\"x\":3},{}]]}"});
}

static void test_a_place_matches_only_at_its_own_level_and_type(void **state)
{
	EXPECT_HITS(state, "{\"a\":{\"id\":1},\"b\":[{\"id\":2}],\"cwd\":3,\"i\":4,\"idd\":5}", );
	EXPECT_HITS(state, "[{\"id\":1},{\"params\":{\"cwd\":2}}]", );
	EXPECT_HITS(state, "{\"params\":[{\"cwd\":1}]}", {PARAMS, "[{\"cwd\":1}]"});
	EXPECT_HITS(state, "{\"params\":{\"update\":{\"locations\":{\"path\":1}}}}",
		{PARAMS, "{\"update\":{\"locations\":{\"path\":1}}}"});
	EXPECT_HITS(state, "{\"\":1,\"id\\u0000\":2,\"ID\":3}", );
}

static void test_names_are_compared_after_escapes_are_decoded(void **state)
{
	EXPECT_HITS(state, "{\"\\u0069d\":1}", {ID, "1"});
	EXPECT_HITS(state, "{\"\\u0069\\u0064\":1}", {ID, "1"});
	EXPECT_HITS(state, "{\"params\":{\"\xc3\xa9\xf0\x9f\x98\x80\":1}}", {TEXT, "1"},
		{PARAMS, "{\"\xc3\xa9\xf0\x9f\x98\x80\":1}"});
	EXPECT_HITS(state, "{\"params\":{\"\\u00e9\\ud83D\\uDe00\":1}}", {TEXT, "1"},
		{PARAMS, "{\"\\u00e9\\ud83D\\uDe00\":1}"});
	EXPECT_HITS(state, "{\"i\\\\d\":1,\"i\\/d\":2,\"\\ud83did\":3,\"\\ude00id\":4}", );
	EXPECT_HITS(state,
		"{\"params\":{\"\xc3\xa9\\ud83d\":1,\"\xc3\xa9\\ud83d\\ud83d\\ude00\":2,"
		"\"\xc3\xa9\\ude00\\ud83d\":3,\"\xc3\xa9\\ud83dx\\ude00\":4}}",
		{PARAMS, "{\"\xc3\xa9\\ud83d\":1,\"\xc3\xa9\\ud83d\\ud83d\\ude00\":2,"
			 "\"\xc3\xa9\\ude00\\ud83d\":3,\"\xc3\xa9\\ud83dx\\ude00\":4}"});
}

static void test_a_name_longer_than_any_known_one_is_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct buf text;
	buf_init(&text, 1024);
	assert_true(buf_append_format(&text, NULL, "{\"id%0400d\":1,\"method\":2}", 0));
	for (size_t piece = 1; piece <= text.len; piece++) {
		struct span head = {text.data, piece};
		json_check_reset(fixture->check);
		assert_true(json_check_feed(fixture->check, head, NULL));
		struct span tail = {text.data + piece, text.len - piece};
		assert_true(json_check_feed(fixture->check, tail, NULL));
		assert_true(json_check_end(fixture->check, NULL));
		assert_int_equal(json_check_hit_count(fixture->check), 2);
		assert_int_equal(json_check_hits(fixture->check)[0].place, METHOD);
	}
	buf_finish(&text);
}

static void test_depth_counts_the_open_containers(void **state)
{
	struct fixture *fixture = *state;
	assert_true(feed_in_pieces(fixture->check,
		"{\"id\":1,\"params\":{\"cwd\":1,\"update\":{\"locations\":[{\"path\":1}]}}}", 5));
	static const struct {
		int place;
		uint32_t depth;
	} depths[] = {{ID, 1}, {PARAMS, 1}, {CWD, 2}, {LOCATION, 5}, {ROOT, 0}};
	for (size_t i = 0; i < ARRAY_LENGTH(depths); i++) {
		const struct json_hit *hit = json_check_find(fixture->check, depths[i].place);
		assert_non_null(hit);
		assert_int_equal(hit->depth, depths[i].depth);
	}
	assert_null(json_check_find(fixture->check, METHOD));
	assert_null(json_check_find(fixture->check, -1));
	assert_null(json_check_find(fixture->check, 256));
}

static void test_find_answers_with_the_first_hit(void **state)
{
	struct fixture *fixture = *state;
	assert_true(feed_in_pieces(fixture->check, "{\"params\":{\"cwd\":1,\"cwd\":22}}", 3));
	const struct json_hit *hit = json_check_find(fixture->check, CWD);
	assert_non_null(hit);
	assert_int_equal(hit->end - hit->start, 1);
	assert_int_equal(json_check_hit_count(fixture->check), 4);
	json_check_reset(fixture->check);
	assert_null(json_check_find(fixture->check, CWD));
	assert_int_equal(json_check_hit_count(fixture->check), 0);
}

static void test_a_once_place_that_comes_again_is_an_error(void **state)
{
	struct fixture *fixture = *state;
	static const char *const twice[] = {
		"{\"id\":1,\"id\":1}",
		"{\"id\":{},\"method\":1,\"\\u0069d\":null}",
		"{\"params\":[],\"params\":[]}",
		"{\"method\":\"\",\"a\":1,\"method\":\"\"}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(twice); i++) {
		for (size_t piece = 1; piece < 20; piece++) {
			assert_false(feed_in_pieces(fixture->check, twice[i], piece));
		}
	}
	struct error err;
	json_check_reset(fixture->check);
	bool ok = json_check_feed(fixture->check, SPAN_LITERAL("{\"id\":1,\"id\":1}"), &err);
	assert_false(ok);
	assert_int_equal(err.code, ERROR_PROTOCOL);
	assert_names(err.text, "byte 13");
	assert_true(feed_in_pieces(fixture->check, "{\"a\":{\"id\":1},\"id\":1}", 4));
}

static void expect_kept(const struct json_check *check, int place, const char *text)
{
	struct span kept;
	assert_true(json_check_kept(check, place, &kept));
	assert_true(span_is(kept, text));
}

static void test_kept_places_hold_their_bytes_however_they_are_cut(void **state)
{
	struct fixture *fixture = *state;
	const char *text = "{\"params\":[1,2,3],\"method\":\"s\\u00e9ss\xc3\xa9\","
			   "\"id\" : [\"a\", {\"b\":-1}] }";
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		assert_true(feed_in_pieces(fixture->check, text, piece));
		expect_kept(fixture->check, METHOD, "\"s\\u00e9ss\xc3\xa9\"");
		expect_kept(fixture->check, ID, "[\"a\", {\"b\":-1}]");
		struct span none;
		assert_false(json_check_kept(fixture->check, PARAMS, &none));
	}
	assert_true(feed_in_pieces(fixture->check, "{\"id\":12}", 1));
	expect_kept(fixture->check, ID, "12");
	struct span none;
	assert_false(json_check_kept(fixture->check, METHOD, &none));
}

static void test_a_value_longer_than_the_maximum_is_not_kept(void **state)
{
	struct fixture *fixture = *state;
	for (size_t len = JSON_KEEP_MAX - 3; len <= JSON_KEEP_MAX + 3; len++) {
		char text[JSON_KEEP_MAX + 64];
		int text_len = snprintf(
			text, sizeof(text), "{\"id\":\"%0*d\",\"method\":1}", (int)len - 2, 0);
		for (size_t piece = 1; piece <= (size_t)text_len; piece += 7) {
			assert_true(feed_in_pieces(fixture->check, text, piece));
			struct span kept;
			bool is_kept = json_check_kept(fixture->check, ID, &kept);
			assert_int_equal(is_kept, len <= JSON_KEEP_MAX);
			assert_true(!is_kept || span_equals(kept, (struct span){text + 6, len}));
			expect_kept(fixture->check, METHOD, "1");
		}
	}
}

static void test_what_was_known_stays_readable_after_a_failure(void **state)
{
	struct fixture *fixture = *state;
	for (size_t piece = 1; piece < 40; piece++) {
		assert_false(feed_in_pieces(fixture->check,
			"{\"id\":\"x1\",\"params\":{\"cwd\":1},\"method\":[01]}", piece));
		expect_kept(fixture->check, ID, "\"x1\"");
		struct span none;
		assert_false(json_check_kept(fixture->check, METHOD, &none));
		assert_int_equal(json_check_hit_count(fixture->check), 3);
		assert_non_null(json_check_find(fixture->check, PARAMS));
	}
}

static void test_more_hits_than_the_maximum_are_a_limit(void **state)
{
	struct fixture *fixture = *state;
	for (size_t count = JSON_HITS_MAX - 3; count <= JSON_HITS_MAX; count++) {
		json_check_reset(fixture->check);
		struct span head = SPAN_LITERAL("{\"params\":{\"a\":0");
		struct error err;
		bool ok = json_check_feed(fixture->check, head, &err);
		for (size_t i = 0; ok && i < count; i++) {
			ok = json_check_feed(fixture->check, SPAN_LITERAL(",\"cwd\":1"), &err);
		}
		ok = ok && json_check_feed(fixture->check, SPAN_LITERAL("}}"), &err);
		/* The object and the root are hits, too. */
		assert_int_equal(ok, count + 2 <= JSON_HITS_MAX);
		assert_true(ok || err.code == ERROR_LIMIT);
	}
}

static void test_a_path_of_the_greatest_depth_is_found(void **state)
{
	static const struct json_place deep[] = {
		{1, "a.b.c.d[].e.f.g.h[].i", 0},
		{2, "a.b.c.d[].e.f.g.h[]", 0},
	};
	struct json_places *places = json_places_create(deep, ARRAY_LENGTH(deep));
	struct json_check *check = json_check_create(places);
	const char *text =
		"{\"a\":{\"b\":{\"c\":{\"d\":[{\"e\":{\"f\":{\"g\":{\"h\":[{\"i\":[[{\"a\":1}]"
		"]}]}}}}]}}}}";
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		assert_true(feed_in_pieces(check, text, piece));
		assert_int_equal(json_check_hit_count(check), 2);
		const struct json_hit *hit = json_check_hits(check);
		assert_int_equal(hit[0].place, 1);
		assert_memory_equal(
			text + hit[0].start, "[[{\"a\":1}]]", hit[0].end - hit[0].start);
		assert_int_equal(hit[0].depth, 11);
		assert_int_equal(hit[1].place, 2);
	}
	json_check_destroy(check);
	json_places_destroy(places);
	json_places_destroy(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_values_of_every_type_are_found),
		TEST(test_hits_come_in_the_order_in_which_their_values_end),
		TEST(test_elements_are_stepped_into),
		TEST(test_a_place_matches_only_at_its_own_level_and_type),
		TEST(test_names_are_compared_after_escapes_are_decoded),
		TEST(test_a_name_longer_than_any_known_one_is_unknown),
		TEST(test_depth_counts_the_open_containers),
		TEST(test_find_answers_with_the_first_hit),
		TEST(test_a_once_place_that_comes_again_is_an_error),
		TEST(test_kept_places_hold_their_bytes_however_they_are_cut),
		TEST(test_a_value_longer_than_the_maximum_is_not_kept),
		TEST(test_what_was_known_stays_readable_after_a_failure),
		TEST(test_more_hits_than_the_maximum_are_a_limit),
		TEST(test_a_path_of_the_greatest_depth_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
