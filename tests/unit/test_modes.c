/* SPDX-License-Identifier: MIT */
#include "broker/policy/modes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/attr.h"
#include "base/span.h"

static void test_modes_that_ask_less_are_known_by_their_names(void **state)
{
	static const char *const less[] = {"bypassPermissions", "acceptEdits", "dontAsk", "auto",
		"yolo", "YOLO", "autoEdit", "auto-edit", "auto_edit", "full-access",
		"agent-full-access", "danger-full-access", "autopilot",
		"https://agentclientprotocol.com/protocol/session-modes#autopilot", "Accept Edits"};
	static const char *const asking[] = {"default", "plan", "ask", "code", "architect",
		"read-only", "agent", "automatic", "", "#", "/",
		"https://agentclientprotocol.com/protocol/session-modes#agent",
		"https://example.org/yolo/plan"};
	for (size_t i = 0; i < ARRAY_LENGTH(less); i++) {
		if (!modes_ask_less("", less[i])) {
			fail_msg("%s", less[i]);
		}
	}
	for (size_t i = 0; i < ARRAY_LENGTH(asking); i++) {
		if (modes_ask_less("", asking[i])) {
			fail_msg("%s", asking[i]);
		}
	}
}

/* The agents' own names, and their behaviour in each of their modes. */
static const struct {
	const char *agent;
	const char *mode;
	enum modes_verdict verdict;
} known[] = {
	{"@agentclientprotocol/codex-acp", "read-only", MODES_ASK},
	{"@agentclientprotocol/codex-acp", "workspace-write", MODES_ASK_LESS},
	{"@agentclientprotocol/codex-acp", "agent", MODES_ASK_LESS},
	{"@agentclientprotocol/codex-acp", "agent-full-access", MODES_ASK_LESS},
	{"@agentclientprotocol/codex-acp", "default", MODES_UNKNOWN}, // one of the user's profiles
	{"@agentclientprotocol/codex-acp", "permission-profile:x/read-only", MODES_UNKNOWN},
	{"@agentclientprotocol/codex-acp", "permission-profile:x/agent", MODES_ASK_LESS},
	{"codex-acp", "auto", MODES_ASK_LESS},
	{"@agentclientprotocol/claude-agent-acp", "default", MODES_ASK},
	{"@agentclientprotocol/claude-agent-acp", "plan", MODES_ASK_LESS},
	{"@agentclientprotocol/claude-agent-acp", "acceptEdits", MODES_ASK_LESS},
	{"@agentclientprotocol/claude-agent-acp", "auto", MODES_ASK_LESS},
	{"@agentclientprotocol/claude-agent-acp", "bypassPermissions", MODES_ASK_LESS},
	{"gemini-cli", "default", MODES_ASK},
	{"gemini-cli", "autoEdit", MODES_ASK_LESS},
	{"gemini-cli", "yolo", MODES_ASK_LESS},
	{"qwen-code", "plan", MODES_ASK},
	{"qwen-code", "auto-edit", MODES_ASK_LESS},
	{"qwen-code", "auto", MODES_ASK_LESS},
	{"OpenCode", "build", MODES_ASK_LESS},
	{"Copilot", "https://agentclientprotocol.com/protocol/session-modes#agent", MODES_ASK},
	{"Copilot", "https://agentclientprotocol.com/protocol/session-modes#autopilot",
		MODES_ASK_LESS},
	{"Copilot", "workspace-write", MODES_UNKNOWN},
	{"", "agent", MODES_UNKNOWN},
	{"somebody's", "default", MODES_ASK},
	{"somebody's", "x/default", MODES_UNKNOWN},
	{"somebody's", "code", MODES_UNKNOWN},
	{"somebody's", "yolo", MODES_ASK_LESS},
};

static void test_modes_are_judged_by_agent(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(known); i++) {
		if (modes_judge(known[i].agent, known[i].mode) != known[i].verdict) {
			fail_msg("%s: %s", known[i].agent, known[i].mode);
		}
	}
	assert_true(modes_know_agent("Copilot"));
	assert_true(modes_know_agent("@agentclientprotocol/claude-agent-acp"));
	assert_false(modes_know_agent(""));
	assert_false(modes_know_agent("scripted-agent"));
}

static const struct {
	const char *agent;
	const char *id;
	const char *category; // may be NULL
	const char *value;
	bool asks_less;
} options[] = {
	{"", "mode", "mode", "bypassPermissions", true},
	{"", "mode", "mode", "auto", true},
	{"", "mode", NULL, "auto", true},
	{"", "mode", "mode", "default", false},
	{"", "model", "model", "auto", false},
	{"", "model", "model", "yolo", false},
	{"", "effort", "thought_level", "auto", false},
	{"", "theme", NULL, "auto", false},
	{"", "theme", NULL, "yolo", true},
	{"", "approval_policy", NULL, "never", true},
	{"", "approval_policy", NULL, "on-request", false},
	{"", "telemetry", NULL, "never", false},
	{"", "allow_all", "permissions", "on", true},
	{"", "allow_all", "permissions", "off", false},
	{"", "allow_all", NULL, "true", true},
	{"", "autoApprove", NULL, "autoApprove", true},
	{"", "autoApprove", NULL, "default", false},
	{"", "yolo", NULL, "true", true},
	{"", "yolo", NULL, "false", false},
	{"", "web_search", NULL, "true", false},
	{"OpenCode", "mode", "mode", "build", true},
	{"OpenCode", "mode", "mode", "plan", true},
	{"OpenCode", "mode", "mode", "mine", false},
	{"@agentclientprotocol/codex-acp", "mode", "mode", "agent", true},
	{"@agentclientprotocol/codex-acp", "mode", "mode", "read-only", false},
	{"@agentclientprotocol/codex-acp", "collaboration_mode", "collaboration_mode", "default",
		false},
	{"@agentclientprotocol/codex-acp", "agent", NULL, "agent", false},
};

static void test_options_are_judged_by_id_category_and_value(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(options); i++) {
		bool less = modes_option_asks_less(
			options[i].agent, options[i].id, options[i].category, options[i].value);
		if (less != options[i].asks_less) {
			fail_msg("%s = %s", options[i].id, options[i].value);
		}
	}
}

#define OFFERED(...) "{\"modes\":{\"availableModes\":[" __VA_ARGS__ "],\"currentModeId\":\"yolo\"}}"
#define SELECT(id, current, more)                                                                  \
	"{\"id\":\"" id "\",\"type\":\"select\",\"currentValue\":\"" current "\"," more "}"

/* What is found first in an object, as "config_id:from>to". */
static const struct {
	const char *object;
	const char *found; // NULL: nothing
} objects[] = {
	{"{}", NULL},
	{"{\"modes\":null,\"configOptions\":null}", NULL},
	{"{\"modes\":{\"currentModeId\":\"ask\"}}", NULL},
	{"{\"modes\":{\"currentModeId\":7}}", NULL},
	{"{\"modes\":{\"currentModeId\":\"yolo\"}}", ":yolo>"},
	{OFFERED("{\"id\":\"yolo\"},{\"id\":\"auto\"}"), ":yolo>"},
	{OFFERED("{\"id\":\"yolo\"},{\"id\":\"code\"},{\"id\":\"chat\"}"), ":yolo>code"},
	{OFFERED("{\"id\":\"plan\"},{\"id\":\"default\"},{\"id\":\"code\"}"), ":yolo>default"},
	{OFFERED("{\"id\":null},7,{\"id\":\"plan\"}"), ":yolo>plan"},
	{"{\"configOptions\":[7,{},{\"id\":\"x\"}]}", NULL},
	{"{\"configOptions\":[" SELECT(
		 "m", "auto", "\"category\":\"model\",\"options\":[{\"value\":\"big\"}]") "]}",
		NULL},
	{"{\"configOptions\":[" SELECT(
		 "mode", "yolo", "\"options\":[{\"value\":\"yolo\"},{\"value\":\"default\"}]") "]}",
		"mode:yolo>default"},
	{"{\"configOptions\":[" SELECT("mode", "yolo",
		 "\"options\":[{\"group\":\"g\",\"options\":[{\"value\":\"auto\"},"
		 "{\"value\":\"ask\"}]}]") "]}",
		"mode:yolo>ask"},
	{"{\"configOptions\":[" SELECT("allow_all", "on",
		 "\"category\":\"permissions\",\"options\":[{\"value\":\"on\"},"
		 "{\"value\":\"off\"}]") "]}",
		"allow_all:on>off"},
	{"{\"configOptions\":[{\"id\":\"yolo\",\"type\":\"boolean\",\"currentValue\":true}]}",
		"yolo:true>false"},
	{"{\"configOptions\":[{\"id\":\"yolo\",\"type\":\"boolean\",\"currentValue\":false}]}",
		NULL},
};

static void test_what_a_session_is_in_is_found_with_what_it_offers_instead(void **state)
{
	for (size_t i = 0; i < ARRAY_LENGTH(objects); i++) {
		struct modes_fix fixes[MODES_FIXES_MAX];
		char found[3 * MODES_NAME_MAX + 8];
		struct json_doc *doc = json_doc_parse(span_of(objects[i].object), NULL);
		assert_non_null(doc);
		size_t count = modes_find("", doc, 0, fixes);
		assert_int_equal(count, objects[i].found ? 1 : 0);
		if (count > 0) {
			snprintf(found, sizeof(found), "%s:%s>%s", fixes[0].config_id,
				fixes[0].from, fixes[0].to);
			assert_string_equal(found, objects[i].found);
		}
		json_doc_destroy(doc);
	}
}

static void test_a_mode_that_is_also_an_option_is_told_once(void **state)
{
	static const char object[] =
		"{\"modes\":{\"currentModeId\":\"yolo\",\"availableModes\":[{\"id\":\"ask\"}]},"
		"\"configOptions\":[" SELECT("mode", "yolo", "\"options\":[]") "," SELECT(
			"allow_all", "on", "\"options\":[]") "]}";
	struct modes_fix fixes[MODES_FIXES_MAX];
	struct json_doc *doc = json_doc_parse(SPAN_LITERAL(object), NULL);
	assert_non_null(doc);
	assert_int_equal(modes_find("", doc, 0, fixes), 2);
	assert_string_equal(fixes[0].config_id, "");
	assert_string_equal(fixes[1].config_id, "allow_all");
	assert_string_equal(fixes[1].to, "");
	json_doc_destroy(doc);
}

static void test_no_more_than_a_few_settings_are_looked_at(void **state)
{
	static const char object[] =
		"{\"configOptions\":[" SELECT("a", "yolo", "\"options\":[]") "," SELECT("b", "yolo",
			"\"options\":[]") "," SELECT("c", "yolo", "\"options\":[]") "," SELECT("d",
			"yolo", "\"options\":[]") "," SELECT("e", "yolo", "\"options\":[]") "]}";
	struct modes_fix fixes[MODES_FIXES_MAX];
	struct json_doc *doc = json_doc_parse(SPAN_LITERAL(object), NULL);
	assert_non_null(doc);
	assert_int_equal(modes_find("", doc, 0, fixes), MODES_FIXES_MAX);
	json_doc_destroy(doc);
}

static void test_an_options_category_is_found_by_its_id(void **state)
{
	char category[16];
	struct json_doc *doc = json_doc_parse(
		SPAN_LITERAL("[{\"id\":\"a\",\"category\":\"model\"},{\"id\":\"b\"}]"), NULL);
	assert_non_null(doc);
	modes_category(doc, 0, "a", category, sizeof(category));
	assert_string_equal(category, "model");
	modes_category(doc, 0, "b", category, sizeof(category));
	assert_string_equal(category, "");
	modes_category(doc, 0, "c", category, sizeof(category));
	assert_string_equal(category, "");
	json_doc_destroy(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modes_that_ask_less_are_known_by_their_names),
		cmocka_unit_test(test_modes_are_judged_by_agent),
		cmocka_unit_test(test_options_are_judged_by_id_category_and_value),
		cmocka_unit_test(test_what_a_session_is_in_is_found_with_what_it_offers_instead),
		cmocka_unit_test(test_a_mode_that_is_also_an_option_is_told_once),
		cmocka_unit_test(test_no_more_than_a_few_settings_are_looked_at),
		cmocka_unit_test(test_an_options_category_is_found_by_its_id),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
