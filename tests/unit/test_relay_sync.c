/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_turn.h"

#include "tests/unit/relay_sync_fixture.h"

/* ---- turns ---- */

static void test_a_prompt_waits_for_the_sync_before_it(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_prompt(fixture, "7");
	let_go(fixture);
	agent_hears_prompt(fixture, 2);
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
}

static void test_what_the_agent_says_after_an_answer_comes_after_it(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s','n':1}");
	agent_says(fixture, 0, "'id':'q','method':'elicitation/create','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'other'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'other'}");
	editor_hears_nothing(fixture);
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':1}");
	editor_hears(fixture, "'id':0,'method':'elicitation/create','params':{'sessionId':'s'}");
}

static void test_an_agent_with_max_requests_messages_behind_an_answer_is_not_read(void **state)
{
	struct fixture *fixture = *state;
	struct desk_pick behind = {.stage = STAGE_BEHIND};
	begin_synced(fixture);
	hold_answer(fixture);
	profile_of(fixture)->max_requests = 2;
	for (int i = 0; i < 4; i++) {
		agent_says(fixture, 0,
			"'method':'session/update','params':{'sessionId':'s','n':%d}", i);
	}
	stage_settle(&fixture->stage);
	assert_int_equal(desk_load(&fixture->relay->desk, behind).count, 2);
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	for (int i = 0; i < 4; i++) {
		editor_hears(
			fixture, "'method':'session/update','params':{'sessionId':'s','n':%d}", i);
	}
}

static void test_what_the_agent_takes_back_meanwhile_is_taken_back_after_it(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'id':'q','method':'elicitation/create','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'q'}");
	editor_hears_nothing(fixture);
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':0,'method':'elicitation/create','params':{'sessionId':'s'}");
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
}

static void test_a_sync_that_fails_fails_the_prompt_and_the_next_one_tries_again(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	dir_transport_hooks.fail_collects = 1;
	prompt(fixture, "7");
	char *notice = editor_line(fixture);
	assert_non_null(strstr(notice, "the link is down"));
	free(notice);
	editor_hears_failure(fixture, "7", "SANDBOX_UNAVAILABLE", "sync", "the link is down");
	prompt(fixture, "8");
	agent_hears_prompt(fixture, 2);
}

static void test_a_sync_that_fails_after_a_prompt_is_told_before_its_answer(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	dir_transport_hooks.fail_collects = 0;
	hold_answer(fixture);
	dir_transport_hooks.fail_collects = 1;
	let_go(fixture);
	char *notice = editor_line(fixture);
	assert_non_null(strstr(notice, "the link is down"));
	free(notice);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
}

/* As if memory had gone bad: the request of its sender is answered all the same, and not lost. */
static void test_an_answer_that_cannot_be_read_again_fails_its_prompt(void **state)
{
	struct fixture *fixture = *state;
	struct buf bytes;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s','n':1}");
	stage_settle(&fixture->stage);
	struct waiting *waiting =
		desk_first(&fixture->relay->desk, (struct desk_pick){.stage = STAGE_ANSWER});
	buf_init(&bytes, 64);
	assert_true(buf_append(&bytes, SPAN_LITERAL("{\"jsonrpc\":\"2.0\"}"), NULL));
	parcel_destroy(waiting->parcel);
	waiting->parcel = parcel_of(&bytes, fixture->relay->places);
	buf_finish(&bytes);
	let_go(fixture);
	editor_hears_failure(fixture, "7", "SYSTEM_ERROR", "relay", "");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':1}");
}

/* ---- cancelled ---- */

static void test_a_prompt_that_is_cancelled_while_it_waits_is_answered_at_once(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_prompt(fixture, "7");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_hears(fixture, "'id':7,'result':{'stopReason':'cancelled'}");
	prompt(fixture, "'$'");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':'$'}");
	editor_hears(fixture, "'id':'$','result':{'stopReason':'cancelled'}");
	let_go(fixture);
	prompt(fixture, "8");
	agent_hears_prompt(fixture, 2);
	editor_hears_nothing(fixture);
}

/* ---- who dies meanwhile ---- */

static void test_an_agent_that_dies_fails_the_prompt_that_waits_once(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_prompt(fixture, "7");
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "relay", "");
	let_go(fixture);
	editor_closes(fixture);
	while (stage_open_sandboxes(&fixture->stage) > 0) {
		stage_wait_turn(&fixture->stage);
	}
	editor_hears_nothing(fixture);
}

static void test_an_agent_that_dies_after_its_answer_has_answered(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s','n':1}");
	stage_settle(&fixture->stage);
	write_file(runtime, "late", "late");
	agent_dies(fixture, 0);
	editor_hears_nothing(fixture);
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':1}");
	editor_closes(fixture);
	while (stage_open_sandboxes(&fixture->stage) > 0) {
		stage_wait_turn(&fixture->stage);
	}
	char late[128];
	snprintf(late, sizeof(late), "%s/late", workspace);
	assert_int_equal(access(late, F_OK), 0);
	editor_hears_nothing(fixture);
}

static void test_what_an_agent_asked_before_it_died_is_not_asked_for_the_next(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s','n':1}");
	agent_says(fixture, 0, "'id':'q','method':'elicitation/create','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'session/update','params':{'sessionId':'s','n':2}");
	stage_settle(&fixture->stage);
	agent_dies(fixture, 0);
	ask_for_session(fixture); // so that another one is started
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':1}");
	editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':2}");
	editor_hears_nothing(fixture);
}

static void test_what_an_agent_took_back_before_it_died_is_not_taken_from_the_next(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	agent_says(fixture, 0, "'id':'q','method':'elicitation/create','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'method':'$/cancel_request','params':{'requestId':'q'}");
	stage_settle(&fixture->stage);
	agent_dies(fixture, 0);
	ask_for_session(fixture); // so that another one is started
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_says(fixture, 1, "'id':'q','method':'_x/ask','params':{}");
	editor_hears(fixture, "'id':0,'method':'_x/ask','params':{}");
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	editor_hears_nothing(fixture);
}

static void test_an_agent_that_dies_while_a_session_waits_fails_it_once(void **state)
{
	struct fixture *fixture = *state;
	begin_greeted(fixture);
	dir_transport_hooks.holds = true;
	ask_for_session(fixture);
	wait_held(fixture);
	agent_dies(fixture, 0);
	editor_hears_failure(fixture, "\"new\"", "AGENT_EXITED", "relay", "");
	let_go(fixture);
	editor_closes(fixture);
	while (stage_open_sandboxes(&fixture->stage) > 0) {
		stage_wait_turn(&fixture->stage);
	}
	editor_hears_nothing(fixture);
}

static void test_a_relay_that_ends_answers_all_that_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_answer(fixture);
	prompt(fixture, "8");
	editor_says(fixture, "'id':9,'method':'_broker/sync','params':{'sessionId':'s'}");
	editor_says(
		fixture, "'id':10,'method':'_broker/checkpoint/list','params':{'sessionId':'s'}");
	stage_settle(&fixture->stage);
	relay_destroy(fixture->relay); // nothing is raised after this, nothing leaks
	fixture->relay = NULL;
	assert_null(dir_transport_hooks.held);
}

static void test_the_end_is_no_time_for_a_prompt_that_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_prompt(fixture, "7");
	editor_closes(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'cancelled'}");
	let_go(fixture);
	agent_hears_end(fixture, 0);
	agent_dies(fixture, 0);
	while (!fixture->is_finished) {
		stage_wait_turn(&fixture->stage);
	}
}

/* ---- rollback ---- */

static void roll_back(struct fixture *fixture, const char *id)
{
	editor_says(fixture,
		"'id':%s,'method':'_broker/checkpoint/rollback','params':{'sessionId':'s',"
		"'checkpoint':1}",
		id);
}

static void test_none_is_rolled_back_while_a_prompt_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	hold_prompt(fixture, "7");
	roll_back(fixture, "8");
	editor_hears_failure(fixture, "8", "TOOLS_IN_FLIGHT", "sync", "prompt | session s");
	let_go(fixture);
	agent_hears_prompt(fixture, 2);
	roll_back(fixture, "9");
	editor_hears_failure(fixture, "9", "TOOLS_IN_FLIGHT", "sync", "prompt | session s");
}

/* The end of another sync is not the end of the rollback. */
static void test_no_prompt_is_taken_until_the_rollback_has_ended(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	dir_transport_hooks.holds = true;
	editor_says(fixture, "'id':7,'method':'_broker/sync','params':{'sessionId':'s'}");
	wait_held(fixture);
	roll_back(fixture, "8");
	stage_settle(&fixture->stage);
	dir_transport_release();
	char *synced = editor_line(fixture);
	assert_non_null(strstr(synced, "\"id\":7,\"result\":{\"record\":"));
	free(synced);
	wait_held(fixture);
	prompt(fixture, "9");
	editor_hears_failure(fixture, "9", "ROLLBACK_IN_PROGRESS", "sync", "rolled back");
	roll_back(fixture, "10");
	editor_hears_failure(fixture, "10", "ROLLBACK_IN_PROGRESS", "sync", "already");
	dir_transport_hooks.fail_collects = 1; // one that fails has ended too
	let_go(fixture);
	char *notice = editor_line(fixture);
	while (!strstr(notice, "\"id\":8,\"error\"")) {
		free(notice);
		notice = editor_line(fixture);
	}
	free(notice);
	prompt(fixture, "11");
	agent_hears_prompt(fixture, 2);
}

/* ---- what the session is told ---- */

static void test_what_the_first_sync_says_comes_after_the_session_is_known(void **state)
{
	struct fixture *fixture = *state;
	write_file(workspace, "f", "here");
	write_file(runtime, "f", "there");
	begin_greeted(fixture);
	ask_for_session(fixture);
	give_session(fixture);
	char *notice = editor_line(fixture);
	assert_non_null(strstr(notice, "changed on both sides"));
	free(notice);
	editor_hears_nothing(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_a_prompt_waits_for_the_sync_before_it),
		SYNC_TEST(test_what_the_agent_says_after_an_answer_comes_after_it),
		SYNC_TEST(test_an_agent_with_max_requests_messages_behind_an_answer_is_not_read),
		SYNC_TEST(test_what_the_agent_takes_back_meanwhile_is_taken_back_after_it),
		SYNC_TEST(test_a_sync_that_fails_fails_the_prompt_and_the_next_one_tries_again),
		SYNC_TEST(test_a_sync_that_fails_after_a_prompt_is_told_before_its_answer),
		SYNC_TEST(test_an_answer_that_cannot_be_read_again_fails_its_prompt),
		SYNC_TEST(test_a_prompt_that_is_cancelled_while_it_waits_is_answered_at_once),
		SYNC_TEST(test_an_agent_that_dies_fails_the_prompt_that_waits_once),
		SYNC_TEST(test_an_agent_that_dies_after_its_answer_has_answered),
		SYNC_TEST(test_what_an_agent_asked_before_it_died_is_not_asked_for_the_next),
		SYNC_TEST(test_what_an_agent_took_back_before_it_died_is_not_taken_from_the_next),
		SYNC_TEST(test_an_agent_that_dies_while_a_session_waits_fails_it_once),
		SYNC_TEST(test_a_relay_that_ends_answers_all_that_waits),
		SYNC_TEST(test_the_end_is_no_time_for_a_prompt_that_waits),
		SYNC_TEST(test_none_is_rolled_back_while_a_prompt_waits),
		SYNC_TEST(test_no_prompt_is_taken_until_the_rollback_has_ended),
		SYNC_TEST(test_what_the_first_sync_says_comes_after_the_session_is_known),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
