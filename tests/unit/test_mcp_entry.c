/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_entry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attr.h"

static const struct {
	const char *json;
	const char *name; // NULL: none
	const char *url;
	const char *command;
	const char *path; // NULL: anything, because it has no command
} samples[] = {
	{"{\"name\":\"a\",\"command\":\"x\",\"args\":[],\"env\":[]}", "a", NULL, "x", ""},
	{"{\"name\":\"a\",\"type\":\"stdio\",\"command\":\"/l/w/x\"}", "a", NULL, "/r/x", ""},
	{"{\"name\":\"a\",\"command\":\"/l/wx\",\"env\":{}}", "a", NULL, "/l/wx", ""},
	{"{\"command\":\"x\",\"env\":[{\"name\":\"A\",\"value\":\"1\"},"
	 "{\"name\":\"PATH\",\"value\":\"/p\"}]}",
		NULL, NULL, "x", "/p"},
	{"{\"command\":\"x\",\"env\":[7,{\"name\":\"PATH\",\"value\":7}]}", NULL, NULL, "x", ""},
	{"{\"name\":\"h\",\"type\":\"http\",\"url\":\"http://h\",\"command\":\"x\"}", "h",
		"http://h", NULL, NULL},
	{"{\"name\":\"s\",\"type\":\"sse\",\"url\":\"http://s\"}", "s", "http://s", NULL, NULL},
	{"{\"name\":\"s\",\"type\":\"http\",\"url\":7}", "s", NULL, NULL, NULL},
	{"{\"name\":\"m\",\"type\":\"acp\",\"serverId\":\"1\",\"command\":\"x\"}", "m", NULL, NULL,
		NULL},
	{"{\"name\":7,\"type\":null,\"command\":\"x\",\"url\":\"http://h\"}", NULL, NULL, NULL,
		NULL},
	{"{\"name\":\"a\",\"command\":[\"x\"]}", "a", NULL, NULL, NULL},
	{"{\"name\":\"a\",\"command\":\"x\\u0000y\"}", "a", NULL, NULL, NULL},
	{"{\"url\":\"http://h\"}", NULL, NULL, NULL, NULL},
	{"[\"command\",\"x\"]", NULL, NULL, NULL, NULL},
	{"\"x\"", NULL, NULL, NULL, NULL},
	{"null", NULL, NULL, NULL, NULL},
};

static void assert_text(const char *got, const char *expected)
{
	if (!expected) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, expected);
}

static void test_what_the_broker_looks_at_is_read_and_nothing_guessed(void **state)
{
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/l/w", "/r"));
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		struct mcp_entry entry;
		struct json_doc *doc = json_doc_parse(span_of(samples[i].json), NULL);
		assert_non_null(doc);
		mcp_entry_init(&entry, &map, doc, 0);
		assert_text(entry.name, samples[i].name);
		assert_text(entry.url, samples[i].url);
		assert_text(entry.command, samples[i].command);
		if (samples[i].path) {
			assert_text(entry.path, samples[i].path);
		}
		mcp_entry_finish(&entry);
		json_doc_destroy(doc);
	}
	path_map_finish(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_broker_looks_at_is_read_and_nothing_guessed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
