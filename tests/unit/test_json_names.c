/* SPDX-License-Identifier: MIT */
#include "base/json_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json_check.h"
#include "base/attr.h"

static const char *const known[] = {"path", "sessionId", "task", NULL};
static const char *const opaque[] = {"_meta", NULL};

static bool check(const char *text, bool is_flat, struct error *err)
{
	struct json_name_rules rules = {.known = known, .opaque = opaque, .is_flat = is_flat};
	struct json_check *json = json_check_create(NULL);
	bool is_json = json_check_feed(json, span_of(text), err) && json_check_end(json, err);
	json_check_destroy(json);
	if (!is_json) {
		fail_msg("%s is no JSON: %s", text, err->text);
	}
	/* A copy of exactly its size, so that a sanitizer notices a read beyond it. */
	char *copy = mem_alloc(strlen(text));
	memcpy(copy, text, strlen(text));
	bool ok = json_names_check((struct span){copy, strlen(text)}, &rules, err);
	free(copy);
	return ok;
}

static void test_what_all_readers_read_alike_passes(void **state)
{
	static const char *const texts[] = {"{}", "[]", "null", "\"x\"", " { } ", "[1,[2,{}],-3e5]",
		"{\"path\":1,\"sessionId\":{\"path\":2},\"x\":[{\"path\":3},{\"path\":4}]}",
		"{\"a\":\"b\\\"c\\\\\",\"c\":\"\\\\\\\"\",\"b\":1}",
		"{\"_meta\":{\"path\":1,\"path\":2,\"PATH\":[{\"a\":{},\"a\":\"}\"}]},\"path\":1}",
		"{\"Foo\":1,\"foo\":2,\"paths\":3,\"pat\":4,\"\":5}",
		"{\"x\":{\"y\":1},\"z\":{\"y\":1}, \"y\" : [ { \"y\" : 1 } , { \"y\" : 2 } ] }"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct error err;
		if (!check(texts[i], false, &err)) {
			fail_msg("%s: %s", texts[i], err.text);
		}
	}
}

static void test_what_readers_may_read_otherwise_is_refused(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} cases[] = {
		{"{\"a\":1,\"a\":2}", "\"a\" occurs twice"},
		{"{\"a\":1,\"b\":2,\"c\":[],\"a\":{}}", "\"a\" occurs twice"},
		{"{\"x\":{\"a\":1,\"a\":2}}", "\"a\" occurs twice"},
		{"{\"x\":[0,{\"name\":\"LANG\",\"value\":\"v\",\"name\":\"LD_PRELOAD\"}]}",
			"\"name\" occurs twice"},
		{"{\"p\\u0061th\":1,\"path\":2}", "\"path\" occurs twice"},
		{"{\"\\u006e\":1,\"\\u006E\":2}", "\"n\" occurs twice"},
		{"{\"_meta\":1,\"_meta\":2}", "\"_meta\" occurs twice"},
		{"[[[[{\"\":1,\"\":2}]]]]", "\"\" occurs twice"},
		{"{\"PATH\":1}", "\"PATH\" differs"},
		{"{\"path\":1,\"Path\":2}", "\"Path\" differs"},
		{"{\"p\\u0041th\":1}", "\"pAth\" differs"},
		{"{\"x\":[{\"sessionid\":1}]}", "\"sessionid\" differs"},
		{"{\"\xc5\xbf"
		 "essionId\":1}",
			"differs"},
		{"{\"ta\\u017fk\":1}", "differs"},
		{"{\"tas\\u212a\":1}", "differs"},
		{"{\"tas\xe2\x84\xaa\":1}", "differs"},
		{"{\"path\\u0000\":1}", "has a NUL"},
		{"{\"_meta\":{},\"x\":{\"_META\":{\"a\":1,\"a\":1}}}", "\"a\" occurs twice"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct error err;
		if (check(cases[i].text, false, &err)) {
			fail_msg("%s passed", cases[i].text);
		}
		if (!strstr(err.text, cases[i].why)) {
			fail_msg("%s: %s", cases[i].text, err.text);
		}
		assert_int_equal(err.code, ERROR_PROTOCOL);
		assert_string_equal(err.reason, "INVALID_PARAMS");
	}
}

static void test_flat_is_the_outermost_object_alone(void **state)
{
	struct error err;
	assert_true(
		check("{\"x\":{\"a\":1,\"a\":\"}\",\"b\":[{\"PATH\":1}]},\"path\":1}", true, &err));
	assert_false(check("{\"x\":{\"a\":1,\"a\":2},\"x\":1}", true, &err));
	assert_false(check("{\"x\":{},\"PATH\":1}", true, &err));
}

static void test_the_members_of_an_object_are_bounded(void **state)
{
	struct error err;
	struct buf text;
	buf_init(&text, 1 << 20);
	assert_true(buf_append(&text, SPAN_LITERAL("{\"last\":0"), &err));
	for (int i = 0; i < JSON_NAMES_MAX - 1; i++) {
		assert_true(buf_append_format(&text, &err, ",\"%d\":{\"a\":%d}", i, i));
	}
	size_t len = text.len;
	assert_true(buf_append(&text, SPAN_LITERAL("}\0"), &err));
	assert_true(check(text.data, false, &err));
	text.len = len;
	assert_true(buf_append(&text, SPAN_LITERAL(",\"more\":1}\0"), &err));
	assert_false(check(text.data, false, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buf_finish(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_all_readers_read_alike_passes),
		cmocka_unit_test(test_what_readers_may_read_otherwise_is_refused),
		cmocka_unit_test(test_flat_is_the_outermost_object_alone),
		cmocka_unit_test(test_the_members_of_an_object_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
