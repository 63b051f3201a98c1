/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "acp/rewrite.h"
#include "base/attr.h"

/* A message, its method, and the message after the translation; NULL: unchanged. */
struct sample {
	enum path_direction direction;
	const char *method;
	const char *text;
	const char *want;
};

#define CALL(method, params)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define RESULT(result) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" result "}"
#define UPDATE(update) CALL("session/update", "{\"sessionId\":\"s\",\"update\":" update "}")

static const struct sample samples[] = {
	{PATH_TO_RUNTIME, "session/new",
		CALL("session/new",
			"{\"cwd\": \"/l/w\",\"additionalDirectories\":[\"/l/w/a\",\"/x\"]}"),
		CALL("session/new",
			"{\"cwd\": \"/r/0\",\"additionalDirectories\":[\"/r/0/a\",\"/x\"]}")},
	{PATH_TO_RUNTIME, "session/list", CALL("session/list", "{\"cwd\":\"/l/w/\"}"),
		CALL("session/list", "{\"cwd\":\"/r/0/\"}")},
	{PATH_TO_RUNTIME, "session/load", CALL("session/load", "{\"cwd\":\"\\/l\\/w\\/\\u00e4\"}"),
		CALL("session/load", "{\"cwd\":\"/r/0/ä\"}")},
	{PATH_TO_RUNTIME, "_own", CALL("_own", "{\"cwd\":\"/l/w\"}"), NULL},
	{PATH_TO_RUNTIME, "session/prompt",
		CALL("session/prompt",
			"{\"prompt\":[{\"text\":\"/l/w\"},{\"uri\":\"file:///l/w/a%20b\"},"
			"{\"resource\":{\"uri\":\"file:///l/w\",\"text\":\"/l/w\"}}]}"),
		CALL("session/prompt",
			"{\"prompt\":[{\"text\":\"/l/w\"},{\"uri\":\"file:///r/0/a%20b\"},"
			"{\"resource\":{\"uri\":\"file:///r/0\",\"text\":\"/l/w\"}}]}")},
	{PATH_TO_LOCAL, "session/update",
		UPDATE("{\"locations\":[{\"path\":\"/r/0/a\",\"line\":1},{\"path\":\"/r/00\"}],"
		       "\"rawInput\":{\"path\":\"/r/0\"},\"title\":\"/r/0\"}"),
		UPDATE("{\"locations\":[{\"path\":\"/l/w/a\",\"line\":1},{\"path\":\"/r/00\"}],"
		       "\"rawInput\":{\"path\":\"/r/0\"},\"title\":\"/r/0\"}")},
	{PATH_TO_LOCAL, "session/update",
		UPDATE("{\"content\":[{\"path\":\"/r/0/d\"},{\"content\":{\"uri\":\"file:///r/"
		       "0\"}},"
		       "{\"content\":{\"resource\":{\"uri\":\"file:///r/0/e\"}}}]}"),
		UPDATE("{\"content\":[{\"path\":\"/l/w/d\"},{\"content\":{\"uri\":\"file:///l/"
		       "w\"}},"
		       "{\"content\":{\"resource\":{\"uri\":\"file:///l/w/e\"}}}]}")},
	{PATH_TO_LOCAL, "session/update", UPDATE("{\"content\":{\"uri\":\"file:///r/0/m\"}}"),
		UPDATE("{\"content\":{\"uri\":\"file:///l/w/m\"}}")},
	{PATH_TO_LOCAL, "session/update",
		UPDATE("{\"content\":{\"resource\":{\"uri\":\"file:///r/0/m\"}}}"),
		UPDATE("{\"content\":{\"resource\":{\"uri\":\"file:///l/w/m\"}}}")},
	{PATH_TO_LOCAL, "session/update",
		UPDATE("{\"_meta\":{\"terminal_info\":{\"cwd\":\"/r/0/t\"}}}"),
		UPDATE("{\"_meta\":{\"terminal_info\":{\"cwd\":\"/l/w/t\"}}}")},
	{PATH_TO_LOCAL, "session/request_permission",
		CALL("session/request_permission",
			"{\"toolCall\":{\"locations\":[{\"path\":\"/r/"
			"0\"}],\"content\":[{\"path\":\"/r/0/d\"},"
			"{\"content\":{\"uri\":\"file:///r/0/u\"}},"
			"{\"content\":{\"resource\":{\"uri\":\"file:///r/0/v\"}}}]}}"),
		CALL("session/request_permission",
			"{\"toolCall\":{\"locations\":[{\"path\":\"/l/"
			"w\"}],\"content\":[{\"path\":\"/l/w/d\"},"
			"{\"content\":{\"uri\":\"file:///l/w/u\"}},"
			"{\"content\":{\"resource\":{\"uri\":\"file:///l/w/v\"}}}]}}")},
	{PATH_TO_LOCAL, "session/list",
		RESULT("{\"sessions\":[{\"cwd\":\"/r/0\",\"additionalDirectories\":[\"/r/0/x\"],"
		       "\"title\":\"/r/0\"},{\"cwd\":\"/q\"}]}"),
		RESULT("{\"sessions\":[{\"cwd\":\"/l/w\",\"additionalDirectories\":[\"/l/w/x\"],"
		       "\"title\":\"/r/0\"},{\"cwd\":\"/q\"}]}")},
	{PATH_TO_LOCAL, "session/new", RESULT("{\"sessions\":[{\"cwd\":\"/r/0\"}]}"), NULL},
	{PATH_TO_LOCAL, "session/prompt",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"/r/0\","
		"\"data\":{\"uri\":\"file:///r/0/n\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"/r/0\","
		"\"data\":{\"uri\":\"file:///l/w/n\"}}}"},
	{PATH_TO_LOCAL, "fs/read_text_file",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"/r/0/n\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"/l/w/n\"}}}"},
	{PATH_TO_RUNTIME, "",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"file:///l/w/n\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"file:///r/0/n\"}}}"},
	{PATH_TO_RUNTIME, "",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"/l/w/n\"}}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"data\":{\"uri\":\"/r/0/n\"}}}"},
	{PATH_TO_LOCAL, "fs/read_text_file", CALL("fs/read_text_file", "{\"path\":\"/r/0/a\"}"),
		CALL("fs/read_text_file", "{\"path\":\"/l/w/a\"}")},
	{PATH_TO_LOCAL, "fs/write_text_file",
		CALL("fs/write_text_file", "{\"path\":\"/r/0/a\",\"content\":\"/r/0\"}"),
		CALL("fs/write_text_file", "{\"path\":\"/l/w/a\",\"content\":\"/r/0\"}")},
	{PATH_TO_LOCAL, "terminal/create",
		CALL("terminal/create", "{\"cwd\":\"/r/0/a\",\"command\":\"/r/0/c\"}"),
		CALL("terminal/create", "{\"cwd\":\"/l/w/a\",\"command\":\"/r/0/c\"}")},
	{PATH_TO_LOCAL, "_own", CALL("_own", "{\"path\":\"/r/0\",\"cwd\":\"/r/0\"}"), NULL},
	{PATH_TO_LOCAL, "session/prompt", CALL("session/prompt", "{\"cwd\":\"/r/0\"}"), NULL},
	{PATH_TO_RUNTIME, "session/new", CALL("session/new", "{\"cwd\":7}"), NULL},
};

static void check_sample(
	struct json_check *check, struct path_map *map, const struct sample *sample)
{
	struct error err;
	struct splice splice;
	struct buf out;
	struct span text = span_of(sample->text);
	struct message message = {.text = text, .check = check};
	splice_init(&splice);
	buf_init(&out, 1 << 16);
	json_check_reset(check);
	assert_true(json_check_feed(check, text, &err) && json_check_end(check, &err));
	assert_true(rewrite_paths(map, sample->direction, &message, sample->method, &splice, &err));
	assert_true(splice_seal(&splice, text.len, &err));
	assert_true(splice_append(&splice, text, &out, &err));
	char *got = mem_strndup(buf_span(&out));
	assert_string_equal(got, sample->want ? sample->want : sample->text);
	assert_int_equal(splice.count == 0, sample->want == NULL);
	free(got);
	buf_finish(&out);
	splice_finish(&splice);
}

static void test_each_place_of_the_table_and_no_other_is_translated(void **state)
{
	struct json_places *places = places_create();
	struct json_check *check = json_check_create(places);
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/l/w", "/r/0"));
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		check_sample(check, &map, &samples[i]);
	}
	path_map_finish(&map);
	json_check_destroy(check);
	json_places_destroy(places);
}

static void test_where_both_sides_are_the_same_nothing_is_looked_at(void **state)
{
	struct path_map map;
	struct splice splice;
	path_map_init(&map);
	splice_init(&splice);
	assert_true(path_map_add(&map, "/l/w", "/l/w"));
	assert_true(rewrite_paths(&map, PATH_TO_LOCAL, NULL, "session/update", &splice, NULL));
	assert_int_equal(splice.count, 0);
	splice_finish(&splice);
	path_map_finish(&map);
}

static void test_a_single_path_is_translated_where_it_is_said_to_stand(void **state)
{
	static const char *const texts[][2] = {
		{"[\"/l/w/x\"]", "[\"/r/0/x\"]"},
		{"[\"\\/l\\/w\\/x\"]", "[\"/r/0/x\"]"},
		{"[\"/l/wx\"]", "[\"/l/wx\"]"},
		{"[7]", "[7]"},
	};
	struct path_map map;
	path_map_init(&map);
	assert_true(path_map_add(&map, "/l/w", "/r/0"));
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		struct splice splice;
		struct buf out;
		struct message message = {.text = span_of(texts[i][0])};
		struct json_hit hit = {.start = 1, .end = message.text.len - 1};
		splice_init(&splice);
		buf_init(&out, 64);
		assert_true(rewrite_path(&map, PATH_TO_RUNTIME, &message, &hit, &splice, NULL));
		assert_true(splice_seal(&splice, message.text.len, NULL));
		assert_true(splice_append(&splice, message.text, &out, NULL));
		assert_true(span_is(buf_span(&out), texts[i][1]));
		buf_finish(&out);
		splice_finish(&splice);
	}
	path_map_finish(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_place_of_the_table_and_no_other_is_translated),
		cmocka_unit_test(test_a_single_path_is_translated_where_it_is_said_to_stand),
		cmocka_unit_test(test_where_both_sides_are_the_same_nothing_is_looked_at),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
