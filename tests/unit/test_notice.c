/* SPDX-License-Identifier: MIT */
#include "broker/session/notice.h"

#include "broker/session/hop.h"
#include "tests/unit/relay_fixture.h"

static struct session *session_s(struct fixture *fixture)
{
	return session_find(&fixture->relay->sessions, "s");
}

static void test_a_notice_is_a_tool_call_that_has_ended(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	notice_send(fixture->relay, session_s(fixture), "one \"thing\"", false);
	notice_send(fixture->relay, session_s(fixture), "another", true);
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':{"
			      "'sessionUpdate':'tool_call','toolCallId':'acp-broker-notice-1',"
			      "'title':'one \\'thing\\'','kind':'other','status':'completed'}}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':{"
			      "'sessionUpdate':'tool_call','toolCallId':'acp-broker-notice-2',"
			      "'title':'another','kind':'other','status':'failed'}}");
}

static void test_what_takes_a_while_is_begun_and_then_updated(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	struct session *session = session_s(fixture);
	unsigned number = notice_show(fixture->relay, session, 0, "Working", NOTICE_RUNNING);
	assert_int_equal(number, 1);
	notice_send(fixture->relay, session, "between", false);
	assert_int_equal(
		notice_show(fixture->relay, session, number, "Done", NOTICE_COMPLETED), number);
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','update':{"
			      "'sessionUpdate':'tool_call','toolCallId':'acp-broker-notice-1',"
			      "'title':'Working','kind':'other','status':'in_progress'}}");
	free(editor_line(fixture));
	editor_hears(fixture,
		"'method':'session/update','params':{'sessionId':'s','update':{"
		"'sessionUpdate':'tool_call_update','toolCallId':'acp-broker-notice-1',"
		"'title':'Done','status':'completed'}}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_a_notice_is_a_tool_call_that_has_ended),
		RELAY_TEST(test_what_takes_a_while_is_begun_and_then_updated),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
