/* SPDX-License-Identifier: MIT */
#include "acp/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"

static struct json_places *places;
static struct json_check *check;

static int set_up(void **state)
{
	places = places_create();
	check = json_check_create(places);
	return 0;
}

static int tear_down(void **state)
{
	json_check_destroy(check);
	json_places_destroy(places);
	return 0;
}

static bool read_text(const char *text, struct error *err)
{
	json_check_reset(check);
	return json_check_feed(check, span_of(text), err) && json_check_end(check, err);
}

/* A message that has the place, and its value there. */
static const struct {
	enum place place;
	const char *text;
	const char *value;
} samples[] = {
	{PLACE_JSONRPC, "{\"jsonrpc\":\"2.0\"}", "\"2.0\""},
	{PLACE_ID, "{\"id\":\"a\\\"b\"}", "\"a\\\"b\""},
	{PLACE_METHOD, "{\"method\":\"session/new\"}", "\"session/new\""},
	{PLACE_PARAMS, "{\"params\":[1, 2]}", "[1, 2]"},
	{PLACE_RESULT, "{\"result\":null}", "null"},
	{PLACE_ERROR, "{\"error\":{\"code\":1}}", "{\"code\":1}"},
	{PLACE_SESSION_ID, "{\"params\":{\"sessionId\":\"s\"}}", "\"s\""},
	{PLACE_REQUEST_ID, "{\"params\":{\"requestId\":-1e5}}", "-1e5"},
	{PLACE_PROTOCOL_VERSION, "{\"params\":{\"protocolVersion\":2}}", "2"},
	{PLACE_CLIENT_CAPABILITIES, "{\"params\":{\"clientCapabilities\":{\"fs\":{}}}}",
		"{\"fs\":{}}"},
	{PLACE_CLIENT_FS, "{\"params\":{\"clientCapabilities\":{\"fs\":{}}}}", "{}"},
	{PLACE_CLIENT_TERMINAL, "{\"params\":{\"clientCapabilities\":{\"terminal\":true}}}",
		"true"},
	{PLACE_CWD, "{\"params\":{\"cwd\":\"/w\"}}", "\"/w\""},
	{PLACE_ADDITIONAL_DIRECTORY, "{\"params\":{\"additionalDirectories\":[\"/a\"]}}", "\"/a\""},
	{PLACE_CURSOR, "{\"params\":{\"cursor\":null}}", "null"},
	{PLACE_NEXT_CURSOR, "{\"result\":{\"nextCursor\":\"c\"}}", "\"c\""},
	{PLACE_LISTED, "{\"result\":{\"sessions\":[{}]}}", "[{}]"},
	{PLACE_LISTED_SESSION_ID, "{\"result\":{\"sessions\":[{\"sessionId\":\"s\"}]}}", "\"s\""},
	{PLACE_MODE_ID, "{\"params\":{\"modeId\":\"m\"}}", "\"m\""},
	{PLACE_CONFIG_ID, "{\"params\":{\"configId\":\"c\"}}", "\"c\""},
	{PLACE_CONFIG_VALUE, "{\"params\":{\"value\":true}}", "true"},
	{PLACE_MCP_SERVERS, "{\"params\":{\"mcpServers\":[{\"name\":\"m\"}]}}",
		"[{\"name\":\"m\"}]"},
	{PLACE_PATH, "{\"params\":{\"path\":\"/p\"}}", "\"/p\""},
	{PLACE_COMMAND, "{\"params\":{\"command\":\"ls\"}}", "\"ls\""},
	{PLACE_ARGS, "{\"params\":{\"args\":[\"-l\"]}}", "[\"-l\"]"},
	{PLACE_ENV, "{\"params\":{\"env\":[]}}", "[]"},
	{PLACE_CONTENT, "{\"params\":{\"content\":\"c\"}}", "\"c\""},
	{PLACE_TOOL_CALL_KIND, "{\"params\":{\"toolCall\":{\"kind\":\"edit\"}}}", "\"edit\""},
	{PLACE_TOOL_CALL_COMMAND,
		"{\"params\":{\"toolCall\":{\"rawInput\":{\"command\":[\"ls\"]}}}}", "[\"ls\"]"},
	{PLACE_TOOL_CALL, "{\"params\":{\"toolCall\":{\"kind\":\"edit\"}}}", "{\"kind\":\"edit\"}"},
	{PLACE_OPTIONS, "{\"params\":{\"options\":[{}]}}", "[{}]"},
	{PLACE_UPDATE_KIND, "{\"params\":{\"update\":{\"sessionUpdate\":\"plan\"}}}", "\"plan\""},
	{PLACE_RESULT_SESSION_ID, "{\"result\":{\"sessionId\":\"r\"}}", "\"r\""},
	{PLACE_RESULT_PROTOCOL_VERSION, "{\"result\":{\"protocolVersion\":1}}", "1"},
	{PLACE_RESULT_AUTH_METHODS, "{\"result\":{\"authMethods\":[]}}", "[]"},
	{PLACE_RESULT_AGENT_NAME, "{\"result\":{\"agentInfo\":{\"name\":\"a\"}}}", "\"a\""},
	{PLACE_RESULT_MCP_HTTP,
		"{\"result\":{\"agentCapabilities\":{\"mcpCapabilities\":{\"http\":true}}}}",
		"true"},
	{PLACE_RESULT_MCP_SSE,
		"{\"result\":{\"agentCapabilities\":{\"mcpCapabilities\":{\"sse\":false}}}}",
		"false"},
	{PLACE_RESULT_LOAD, "{\"result\":{\"agentCapabilities\":{\"loadSession\":true}}}", "true"},
	{PLACE_RESULT_CLOSE,
		"{\"result\":{\"agentCapabilities\":{\"sessionCapabilities\":{\"close\":{}}}}}",
		"{}"},
	{PLACE_RESULT_RESUME,
		"{\"result\":{\"agentCapabilities\":{\"sessionCapabilities\":{\"resume\":{}}}}}",
		"{}"},
	{PLACE_RESULT_META, "{\"result\":{\"_meta\":{\"a\":1}}}", "{\"a\":1}"},
	{PLACE_RESULT_META_BROKER, "{\"result\":{\"_meta\":{\"broker\":{\"v\":1}}}}", "{\"v\":1}"},
	{PLACE_PROMPT, "{\"params\":{\"prompt\":[{}]}}", "[{}]"},
	{PLACE_TOOL_CALL_CWD, "{\"params\":{\"toolCall\":{\"rawInput\":{\"cwd\":\"/\"}}}}",
		"\"/\""},
	{PLACE_TOOL_CALL_ENV, "{\"params\":{\"toolCall\":{\"rawInput\":{\"env\":[]}}}}", "[]"},
	{PLACE_ANY_TOOL_CALL_ID, "{\"params\":{\"toolCallId\":\"c\"}}", "\"c\""},
	{PLACE_UPDATE_TOOL_CALL_ID, "{\"params\":{\"update\":{\"TOOLCallid\":\"c\"}}}", "\"c\""},
	{PLACE_TOOL_CALL_ID, "{\"params\":{\"toolCall\":{\"toolCallId\":\"c\"}}}", "\"c\""},
	{PLACE_PROMPT_URI, "{\"params\":{\"prompt\":[{\"uri\":\"/x\"}]}}", "\"/x\""},
	{PLACE_PROMPT_RESOURCE_URI, "{\"params\":{\"prompt\":[{\"resource\":{\"uri\":\"/x\"}}]}}",
		"\"/x\""},
	{PLACE_UPDATE_LOCATION, "{\"params\":{\"update\":{\"locations\":[{\"path\":\"/x\"}]}}}",
		"\"/x\""},
	{PLACE_UPDATE_DIFF, "{\"params\":{\"update\":{\"content\":[{\"path\":\"/x\"}]}}}",
		"\"/x\""},
	{PLACE_UPDATE_URI, "{\"params\":{\"update\":{\"content\":{\"uri\":\"/x\"}}}}", "\"/x\""},
	{PLACE_UPDATE_RESOURCE_URI,
		"{\"params\":{\"update\":{\"content\":{\"resource\":{\"uri\":\"/x\"}}}}}",
		"\"/x\""},
	{PLACE_UPDATE_ITEM_URI,
		"{\"params\":{\"update\":{\"content\":[{\"content\":{\"uri\":\"/x\"}}]}}}",
		"\"/x\""},
	{PLACE_UPDATE_ITEM_RESOURCE_URI,
		"{\"params\":{\"update\":{\"content\":[{\"content\":{\"resource\":{\"uri\":\"/"
		"x\"}}}]}}}",
		"\"/x\""},
	{PLACE_UPDATE_TERMINAL_CWD,
		"{\"params\":{\"update\":{\"_meta\":{\"terminal_info\":{\"cwd\":\"/x\"}}}}}",
		"\"/x\""},
	{PLACE_TOOL_CALL_LOCATION,
		"{\"params\":{\"toolCall\":{\"locations\":[{\"path\":\"/x\"}]}}}", "\"/x\""},
	{PLACE_TOOL_CALL_DIFF, "{\"params\":{\"toolCall\":{\"content\":[{\"path\":\"/x\"}]}}}",
		"\"/x\""},
	{PLACE_TOOL_CALL_ITEM_URI,
		"{\"params\":{\"toolCall\":{\"content\":[{\"content\":{\"uri\":\"/x\"}}]}}}",
		"\"/x\""},
	{PLACE_TOOL_CALL_ITEM_RESOURCE_URI,
		"{\"params\":{\"toolCall\":{\"content\":[{\"content\":{\"resource\":{\"uri\":\"/"
		"x\"}}}]}}}",
		"\"/x\""},
	{PLACE_LISTED_CWD, "{\"result\":{\"sessions\":[{\"cwd\":\"/x\"}]}}", "\"/x\""},
	{PLACE_LISTED_DIRECTORY,
		"{\"result\":{\"sessions\":[{\"additionalDirectories\":[\"/x\"]}]}}", "\"/x\""},
	{PLACE_ERROR_URI, "{\"error\":{\"data\":{\"uri\":\"/x\"}}}", "\"/x\""},
};

static void test_each_place_is_found_where_the_protocol_has_it(void **state)
{
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		assert_true(read_text(samples[i].text, &err));
		const struct json_hit *hit = json_check_find(check, (int)samples[i].place);
		if (!hit) {
			fail_msg("%s has no place", samples[i].text);
			return;
		}
		assert_true(
			span_is((struct span){samples[i].text + hit->start, hit->end - hit->start},
				samples[i].value));
	}
}

static void test_there_is_a_sample_of_each_place(void **state)
{
	bool has_sample[PLACE_COUNT] = {false};
	for (size_t i = 0; i < ARRAY_LENGTH(samples); i++) {
		has_sample[samples[i].place] = true;
	}
	for (int place = 0; place < PLACE_COUNT; place++) {
		if (!has_sample[place]) {
			fail_msg("place %d has no sample", place);
		}
	}
}

static void test_names_elsewhere_are_no_places(void **state)
{
	static const char *const texts[] = {
		"{\"params\":{\"update\":{\"sessionId\":\"s\",\"path\":\"/p\",\"cwd\":\"/\"}}}",
		"{\"sessionId\":\"s\",\"cwd\":\"/\",\"command\":\"ls\",\"protocolVersion\":1}",
		"{\"result\":{\"outcome\":{\"sessionId\":\"s\",\"_meta\":{\"broker\":1}}}}",
		"{\"error\":{\"id\":1,\"method\":\"m\",\"data\":{\"path\":\"/p\"}}}",
		"[{\"id\":1,\"method\":\"m\"}]",
	};
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		assert_true(read_text(texts[i], &err));
		for (int place = 0; place < PLACE_COUNT; place++) {
			bool is_envelope = place == PLACE_PARAMS || place == PLACE_RESULT ||
			                   place == PLACE_ERROR;
			assert_true(is_envelope || !json_check_find(check, place));
		}
	}
}

/* If there were two values, the next reader might take the other one. */
static void test_what_the_broker_acts_on_may_come_once(void **state)
{
	static const char *const texts[] = {
		"{\"id\":1,\"id\":2}",
		"{\"method\":\"a\",\"m\\u0065thod\":\"b\"}",
		"{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}",
		"{\"params\":{},\"params\":{}}",
		"{\"result\":1,\"result\":1}",
		"{\"error\":{},\"error\":{}}",
		"{\"params\":{\"sessionId\":\"a\",\"sessionId\":\"b\"}}",
		"{\"params\":{\"path\":\"/a\",\"path\":\"/b\"}}",
		"{\"params\":{\"mcpServers\":[],\"mcpServers\":[]}}",
		"{\"params\":{\"command\":\"a\",\"command\":\"b\"}}",
		"{\"params\":{\"toolCall\":{},\"toolCall\":{}}}",
		"{\"params\":{\"options\":[],\"options\":[]}}",
		"{\"result\":{\"_meta\":{},\"_meta\":{}}}",
	};
	struct error err;
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		if (read_text(texts[i], &err)) {
			fail_msg("%s was taken", texts[i]);
		}
		assert_int_equal(err.code, ERROR_PROTOCOL);
	}
}

static void test_places_in_arrays_come_as_often_as_they_like(void **state)
{
	struct error err;
	int found = 0;
	assert_true(
		read_text("{\"params\":{\"additionalDirectories\":[\"/a\",\"/b\",\"/a\"]}}", &err));
	for (size_t i = 0; i < json_check_hit_count(check); i++) {
		found += json_check_hits(check)[i].place == PLACE_ADDITIONAL_DIRECTORY;
	}
	assert_int_equal(found, 3);
}

static void test_id_and_method_of_a_refused_line_are_kept(void **state)
{
	struct error err;
	struct span kept;
	assert_false(read_text("{\"id\":\"x\",\"method\":\"session/new\",\"params\":{]", &err));
	assert_true(json_check_kept(check, PLACE_ID, &kept));
	assert_true(span_is(kept, "\"x\""));
	assert_true(json_check_kept(check, PLACE_METHOD, &kept));
	assert_true(span_is(kept, "\"session/new\""));
}

#define PLACES_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACES_TEST(test_each_place_is_found_where_the_protocol_has_it),
		cmocka_unit_test(test_there_is_a_sample_of_each_place),
		PLACES_TEST(test_names_elsewhere_are_no_places),
		PLACES_TEST(test_what_the_broker_acts_on_may_come_once),
		PLACES_TEST(test_places_in_arrays_come_as_often_as_they_like),
		PLACES_TEST(test_id_and_method_of_a_refused_line_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
