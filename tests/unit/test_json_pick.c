/* SPDX-License-Identifier: MIT */
#include "providers/local/json_pick.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "base/text.h"

static const char *const keys[] = {
	"a.list", "a.token", "b", "c.d.deep", "c.d.other", "model", NULL};

static void assert_picks(const char *text, const char *wanted)
{
	struct error err;
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_true(json_pick(span_of(text), keys, &out, &err));
	char *picked = mem_strndup(buf_span(&out));
	assert_string_equal(picked, wanted);
	free(picked);
	buf_finish(&out);
}

static void assert_renews(const char *text, const char *from, const char *wanted)
{
	struct error err;
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_true(json_renew(span_of(text), span_of(from), keys, &out, &err));
	char *renewed = mem_strndup(buf_span(&out));
	assert_string_equal(renewed, wanted);
	free(renewed);
	buf_finish(&out);
}

static void test_only_named_values_are_picked(void **state)
{
	assert_picks("{\"hooks\": {\"x\": 1}, \"model\": \"m\", \"a\": {\"token\": \"t\", "
		     "\"evil\": 1, \"list\": [\"x\", 1]}, \"c\": {\"d\": {\"deep\": true}}}",
		"{\"a\":{\"list\":[\"x\", 1],\"token\":\"t\"},\"c\":{\"d\":{\"deep\":true}},"
		"\"model\":\"m\"}");
	assert_picks("{}", "{}");
	assert_picks("{\"a\": \"no object\", \"c\": {\"d\": null}}", "{\"c\":{}}");
}

/* An object may contain anything, and so may a list of objects. */
static void test_what_is_no_plain_value_is_missing(void **state)
{
	assert_picks("{\"model\": {\"command\": \"x\"}, \"b\": [{\"x\": 1}]}", "{}");
	assert_picks("{\"model\": null, \"b\": [[1]], \"a\": {\"token\": {}}}", "{\"a\":{}}");
}

static void test_of_two_members_of_one_name_one_is_picked(void **state)
{
	assert_picks("{\"b\": 1, \"b\": {\"x\": 2}}", "{\"b\":1}");
}

static void test_a_long_value_is_missing(void **state)
{
	static char value[JSON_PICK_VALUE_MAX + 1];
	char *text = mem_alloc_zero(sizeof(value) + 64);
	memset(value, 'x', sizeof(value) - 1);
	assert_true(text_whole(text, sizeof(value) + 64, "{\"b\": \"%s\"}", value));
	assert_picks(text, "{}");
	free(text);
}

static void test_what_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = {
		"", "[]", "\"model\"", "{", "{\"model\": \"m\"", "{\"b\": 01}", "{\"b\": 1} x"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct error err;
		struct buf out;
		buf_init(&out, 1 << 20);
		assert_false(json_pick(span_of(texts[i]), keys, &out, &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
		assert_false(
			json_renew(span_of("{\"b\": 1}"), span_of(texts[i]), keys, &out, &err));
		assert_false(json_renew(span_of(texts[i]), span_of("{}"), keys, &out, &err));
		buf_finish(&out);
	}
}

static void test_renewing_changes_named_values_alone(void **state)
{
	assert_renews("{ \"mcp\" : {\"x\":1},\n\"model\": \"old\", \"a\":{\"token\" : \"1\"} }\n",
		"{\"a\": {\"token\": \"2\"}, \"model\": \"new\", \"mcp\": {}}",
		"{ \"mcp\" : {\"x\":1},\n\"model\": \"new\", \"a\":{\"token\" : \"2\"} }\n");
	assert_renews("{\"b\": 1}", "{\"b\": 2, \"model\": \"m\"}", "{\"b\": 2}");
}

static void test_a_value_keeps_its_type(void **state)
{
	assert_renews("{\"b\": \"text\", \"a\": {\"list\": [1]}}",
		"{\"b\": 5, \"a\": {\"list\": [{}]}}", "{\"b\": \"text\", \"a\": {\"list\": [1]}}");
	assert_renews("{\"b\": {\"x\": 1}}", "{\"b\": \"y\"}", "{\"b\": {\"x\": 1}}");
}

static void test_newer_is_the_greater_number_or_text(void **state)
{
	assert_true(json_is_newer(span_of("{\"b\": 1}"), span_of("{\"b\": 2}"), "b"));
	assert_false(json_is_newer(span_of("{\"b\": 2}"), span_of("{\"b\": 2}"), "b"));
	assert_true(json_is_newer(span_of("{\"c\": {\"d\": \"2026-01-01T00:00:00Z\"}}"),
		span_of("{\"c\": {\"d\": \"2026-01-02T00:00:00Z\"}}"), "c.d"));
	assert_false(json_is_newer(span_of("{\"b\": 1}"), span_of("{\"b\": \"2\"}"), "b"));
	assert_false(json_is_newer(span_of("{}"), span_of("{\"b\": 2}"), "b"));
	assert_false(json_is_newer(span_of("{\"b\": 1}"), span_of("{"), "b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_named_values_are_picked),
		cmocka_unit_test(test_what_is_no_plain_value_is_missing),
		cmocka_unit_test(test_of_two_members_of_one_name_one_is_picked),
		cmocka_unit_test(test_a_long_value_is_missing),
		cmocka_unit_test(test_what_is_no_object_is_refused),
		cmocka_unit_test(test_renewing_changes_named_values_alone),
		cmocka_unit_test(test_a_value_keeps_its_type),
		cmocka_unit_test(test_newer_is_the_greater_number_or_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
