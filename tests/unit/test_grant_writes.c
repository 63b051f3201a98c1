/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_writes.h"

#include <stdio.h>

#include "base/text.h"
#include "tests/unit/grant_fixture.h"

/* What a session is offered when programs of its confined agent meet a read-only file system. */

static void begin_confined(struct fixture *fixture)
{
	begin_with_session(fixture);
	stage_confine(&fixture->stage);
}

static void update(struct fixture *fixture, const char *text)
{
	agent_says(fixture, 0,
		"'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':"
		"'tool_call_update','toolCallId':'t','content':[{'type':'content','content':"
		"{'type':'text','text':'%s'}}]}}",
		text);
	free(editor_line(fixture));
}

static void hear_offer(struct fixture *fixture, const char *text, const char *folder)
{
	char facts[256];
	agent_says(fixture, 0,
		"'method':'session/update','params':{'sessionId':'s','update':{'sessionUpdate':"
		"'tool_call_update','toolCallId':'t','rawOutput':'%s'}}",
		text);
	char *line = editor_line(fixture);
	text_whole(facts, sizeof(facts), "allow-write = %s in [", folder);
	assert_non_null(strstr(line, "acp-broker-notice"));
	assert_non_null(strstr(line, facts));
	free(line);
	free(editor_line(fixture));
}

static void test_the_folder_is_read_from_what_programs_say(void **state)
{
	static const char *const texts[] = {
		"touch: cannot touch \\u2018/writable/a/x\\u2019: Read-only file system",
		"error: failed to open:\\n/writable/a/index\\n\\nCaused by:\\n  Read-only file "
		"system "
		"(os error 30)",
		"Error: EROFS: read-only file system, open `/writable/a/file`",
	};
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		void *another;
		assert_int_equal(set_up(&another), 0);
		begin_confined(another);
		hear_offer(another, texts[i], "/writable/a");
		editor_hears_nothing(another);
		assert_int_equal(tear_down(&another), 0);
	}
}

static void test_each_folder_is_offered_once_and_few_of_them(void **state)
{
	struct fixture *fixture = *state;
	begin_confined(fixture);
	hear_offer(fixture, "/writable/a/x: Read-only file system", "/writable/a");
	update(fixture, "/writable/a/y: Read-only file system");
	editor_hears_nothing(fixture);
	hear_offer(fixture, "/writable/b/x: Read-only file system", "/writable/b");
	hear_offer(fixture, "/writable/c/x: Read-only file system", "/writable/c");
	update(fixture, "/writable/d/x: Read-only file system");
	editor_hears_nothing(fixture);
}

static void test_what_the_sandbox_does_not_name_is_not_offered(void **state)
{
	static const char *const texts[] = {"/other/x: Read-only file system",
		"/writable/a/x: Permission denied", "x/writable/a: Read-only file system",
		"Read-only file system"};
	struct fixture *fixture = *state;
	begin_confined(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(texts); i++) {
		update(fixture, texts[i]);
		editor_hears_nothing(fixture);
	}
}

static void test_an_agent_that_is_not_confined_is_offered_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	update(fixture, "/writable/a/x: Read-only file system");
	editor_hears_nothing(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_folder_is_read_from_what_programs_say),
		RELAY_TEST(test_each_folder_is_offered_once_and_few_of_them),
		RELAY_TEST(test_what_the_sandbox_does_not_name_is_not_offered),
		RELAY_TEST(test_an_agent_that_is_not_confined_is_offered_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
