/* SPDX-License-Identifier: MIT */
#include "broker/init/jsonc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/json_check.h"

enum { OUT_MAX = 1 << 20 };

static const char value[] = "{\n\t\"command\": \"b\",\n\t\"args\": [\"x\"]\n}";

struct result {
	bool ok;
	enum jsonc_outcome outcome;
	struct buf out;
	struct error err;
};

static void add(struct result *result, const char *text)
{
	*result = (struct result){.outcome = JSONC_ADDED};
	buf_init(&result->out, OUT_MAX);
	result->ok = jsonc_add(span_of(text), "agent_servers", "n", span_of(value), &result->out,
		&result->outcome, &result->err);
}

/* Checks what was added, and that the text before and after it is unchanged. */
static void assert_kept(const char *text, struct span out)
{
	size_t len = strlen(text);
	size_t same = 0;
	while (same < len && same < out.len && text[same] == out.data[same]) {
		same++;
	}
	assert_true(out.len >= len);
	assert_memory_equal(out.data + out.len - (len - same), text + same, len - same);
}

static void assert_added(const char *text, const char *expected)
{
	struct result result;
	add(&result, text);
	assert_true(result.ok);
	assert_int_equal(result.outcome, JSONC_ADDED);
	assert_int_equal(result.out.len, strlen(expected));
	assert_memory_equal(buf_span(&result.out).data, expected, strlen(expected));
	assert_kept(text, buf_span(&result.out));
	struct buf again;
	buf_init(&again, OUT_MAX);
	enum jsonc_outcome outcome;
	assert_true(jsonc_add(buf_span(&result.out), "agent_servers", "n", span_of(value), &again,
		&outcome, &result.err));
	assert_int_equal(outcome, JSONC_SAME);
	assert_int_equal(again.len, 0);
	buf_finish(&again);
	buf_finish(&result.out);
}

#define MEMBER(indent, unit, end)                                                                  \
	indent "\"n\": {" end indent unit "\"command\": \"b\"," end indent unit                    \
	       "\"args\": [\"x\"]" end indent "}"
#define SERVERS(indent, unit, end)                                                                 \
	indent "\"agent_servers\": {" end MEMBER(indent unit, unit, end)                           \
	end indent "}"

static void test_a_text_without_a_document_gets_one(void **state)
{
	static const char made[] = "{\n" SERVERS("  ", "  ", "\n") "\n}\n";
	char expected[512];
	static const char *const texts[] = {
		"", "\n\n", "// a note\n", "/* {} */\n", "\xef\xbb\xbf"};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		snprintf(expected, sizeof(expected), "%s%s", texts[i], made);
		assert_added(texts[i], expected);
	}
	snprintf(expected, sizeof(expected), "// a note\n%s", made);
	struct result result;
	add(&result, "// a note");
	assert_true(result.ok);
	assert_memory_equal(buf_span(&result.out).data, expected, strlen(expected));
	buf_finish(&result.out);
}

static void test_the_object_is_made_where_it_is_missing(void **state)
{
	assert_added("{}", "{\n" SERVERS("  ", "  ", "\n") "\n}");
	assert_added("{\n}\n", "{\n" SERVERS("  ", "  ", "\n") "\n}\n");
	assert_added("{ /* none */ }\n", "{ /* none */ \n" SERVERS("  ", "  ", "\n") "\n}\n");
	assert_added("{\"a\":1}", "{\n" SERVERS("  ", "  ", "\n") ",\n  \"a\":1}");
	assert_added(
		"{\n    \"a\": 1\n}\n", "{\n" SERVERS("    ", "    ", "\n") ",\n    \"a\": 1\n}\n");
}

static void test_comments_and_commas_stay_with_what_they_are_about(void **state)
{
	assert_added("// head\n{ // open\n  // about a\n  \"a\": [1, 2,], // after\n}\n// end\n",
		"// head\n{ // open\n" SERVERS(
			"  ", "  ", "\n") ",\n"
					  "  // about a\n  \"a\": [1, 2,], // after\n}\n// end\n");
	assert_added("{ /* a\n long */ \"a\": \"// no /* comment\",\n}",
		"{\n" SERVERS(
			"  ", "  ", "\n") ",\n   /* a\n long */ \"a\": \"// no /* comment\",\n}");
}

static void test_an_agent_comes_before_the_others(void **state)
{
	assert_added("{\n  \"agent_servers\": {\n    // mine\n    \"o\": {\"command\": \"c\"},\n  "
		     "},\n}\n",
		"{\n  \"agent_servers\": {\n" MEMBER("    ", "  ",
			"\n") ",\n"
			      "    // mine\n    \"o\": {\"command\": \"c\"},\n  },\n}\n");
	assert_added("{\n  \"agent_servers\": {}\n}\n",
		"{\n  \"agent_servers\": {\n" MEMBER("    ", "  ", "\n") "\n  }\n}\n");
	assert_added("{\n  \"agent\\u005fservers\": {\n  }\n}\n",
		"{\n  \"agent\\u005fservers\": {\n" MEMBER("    ", "  ", "\n") "\n  }\n}\n");
}

static void test_line_ends_tabs_and_marks_are_kept(void **state)
{
	assert_added("{\r\n\t\"a\": 1\r\n}\r\n",
		"{\r\n" SERVERS("\t", "\t", "\r\n") ",\r\n\t\"a\": 1\r\n}\r\n");
	assert_added("\xef\xbb\xbf{\n}", "\xef\xbb\xbf{\n" SERVERS("  ", "  ", "\n") "\n}");
	assert_added("{\r\n\t\"agent_servers\": {\r\n\t\t\"o\": {}\r\n\t}\r\n}",
		"{\r\n\t\"agent_servers\": {\r\n" MEMBER(
			"\t\t", "\t", "\r\n") ",\r\n"
					      "\t\t\"o\": {}\r\n\t}\r\n}");
}

static void assert_outcome(const char *text, enum jsonc_outcome outcome)
{
	struct result result;
	add(&result, text);
	assert_true(result.ok);
	assert_int_equal(result.outcome, outcome);
	assert_int_equal(result.out.len, 0);
	buf_finish(&result.out);
}

static void test_a_member_that_is_there_stays(void **state)
{
	assert_outcome("{\"agent_servers\":{\"n\":{\"args\":[\"x\",],\"command\":\"\\u0062\"}}}",
		JSONC_SAME);
	static const char *const others[] = {
		"{\"agent_servers\":{\"n\":{\"args\":[\"y\"],\"command\":\"b\"}}}",
		"{\"agent_servers\":{\"n\":{\"args\":[\"x\"],\"command\":\"b\",\"env\":{}}}}",
		"{\"agent_servers\":{\"n\":{\"args\":[\"x\"],\"kommand\":\"b\"}}}",
		"{\"agent_servers\":{\"n\":{\"args\":{\"x\":1},\"command\":\"b\"}}}",
		"{\"agent_servers\":{\"n\":null}}",
		"{\"agent_servers\":{\"n\":{\"args\":[\"x\"],\"command\":\"b\"},\"n\":1}}",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(others); i++) {
		assert_outcome(others[i], JSONC_OTHER);
	}
}

static void assert_refused(const char *text, const char *line)
{
	struct result result;
	add(&result, text);
	assert_false(result.ok);
	assert_int_equal(result.out.len, 0);
	assert_non_null(strstr(result.err.text, line));
	buf_finish(&result.out);
}

static void test_what_is_not_understood_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *line;
	} cases[] = {
		{"{\n\"a\": 1\n\"b\": 2}", "line 3"},
		{"{\n'a': 1}", "line 2"},
		{"{\na: 1}", "line 2"},
		{"{\n\n/* open", "line 3"},
		{"/", "line 1"},
		{"{\"a\": \"no end\n}", "line 1"},
		{"{\"a\": \"no end\\", "line 1"},
		{"{,}", "line 1"},
		{"{\"a\": 1,,}", "line 1"},
		{"{\"a\":,}", "line 1"},
		{"[1, 2]", "line 1"},
		{"\"text\"", "line 1"},
		{"{}\n{}", "line 2"},
		{"{\n\"agent_servers\": []}", "line 2"},
		{"{\n\"agent_servers\": null}", "line 2"},
		{"{\"agent_servers\": {},\n\"agent_servers\": {}}", "line 2"},
		{"{\n\"a\": \"\x01\"}", "line 2"},
		{"{\n\"a\": \"\xff\"}", "line 2"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		assert_refused(cases[i].text, cases[i].line);
	}
}

static void test_nesting_has_a_bound(void **state)
{
	enum { TOO_DEEP = JSON_DEPTH_MAX + 8 };
	char text[TOO_DEEP * 2 + 32];
	size_t len = (size_t)snprintf(text, sizeof(text), "{\"a\":");
	memset(text + len, '[', TOO_DEEP);
	memset(text + len + TOO_DEEP, ']', TOO_DEEP);
	snprintf(text + len + TOO_DEEP * 2, sizeof(text) - len - TOO_DEEP * 2, "}");
	assert_refused(text, "line 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_without_a_document_gets_one),
		cmocka_unit_test(test_the_object_is_made_where_it_is_missing),
		cmocka_unit_test(test_comments_and_commas_stay_with_what_they_are_about),
		cmocka_unit_test(test_an_agent_comes_before_the_others),
		cmocka_unit_test(test_line_ends_tabs_and_marks_are_kept),
		cmocka_unit_test(test_a_member_that_is_there_stays),
		cmocka_unit_test(test_what_is_not_understood_is_refused_with_its_line),
		cmocka_unit_test(test_nesting_has_a_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
