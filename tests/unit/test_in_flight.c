/* SPDX-License-Identifier: MIT */
#include "broker/session/in_flight.h"

#include <signal.h>

#include "broker/ledger/turn_lock.h"
#include "tests/support/facts.h"
#include "tests/unit/relay_sync_fixture.h"

/*
 * What somebody who rolls the workspace back by hand is told about the agent; NULL: nothing is in
 * the way.
 */
static void expect_by_hand(struct fixture *fixture, const char *list)
{
	struct turn_locks locks;
	struct error err;
	char text[128];
	struct turn_search search = {.state_folder = state_folder, .root = workspace};
	bool is_free = turn_locks_take(&locks, &search, &err);
	turn_locks_finish(&locks);
	assert_true(is_free == (list == NULL));
	if (list) {
		snprintf(text, sizeof(text), "in flight | %s | TOOLS_IN_FLIGHT", list);
		assert_names(err.text, text);
	}
}

static void test_a_prompt_is_under_way_until_its_answer_is_here(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	expect_by_hand(fixture, NULL);
	hold_answer(fixture);
	expect_by_hand(fixture, "prompt | session s");
	let_go(fixture);
	editor_hears(fixture, "'id':7,'result':{'stopReason':'end_turn'}");
	expect_by_hand(fixture, NULL);
}

static void test_a_prompt_whose_agent_dies_is_over(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	prompt(fixture, "7");
	agent_hears_prompt(fixture, 2);
	expect_by_hand(fixture, "prompt | session s");
	actor_exits(agent(fixture, 0), 1, 0);
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "relay", "");
	expect_by_hand(fixture, NULL);
}

static void test_terminals_are_under_way_until_nothing_of_them_is_left(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	agent_says(fixture, 0,
		"'id':'c','method':'terminal/create','params':{'sessionId':'s','command':'make'}");
	agent_hears(fixture, 0, "'id':'c','result':{'terminalId':'term-1'}");
	expect_by_hand(fixture, "term-1 in session s");
	agent_says(fixture, 0,
		"'id':'r','method':'terminal/release','params':{'sessionId':'s','terminalId':"
		"'term-1'}");
	expect_by_hand(fixture, "term-1 in session s");
	actor_exits(agent(fixture, 1), 0, SIGKILL);
	agent_hears(fixture, 0, "'id':'r','result':{}");
	expect_by_hand(fixture, "term-1 in session s");
	actor_empties(agent(fixture, 1));
	stage_settle(&fixture->stage);
	expect_by_hand(fixture, NULL);
}

static void test_a_prompt_is_refused_while_the_workspace_is_brought_back(void **state)
{
	struct fixture *fixture = *state;
	struct turn_locks locks;
	struct error err;
	begin_synced(fixture);
	struct turn_search search = {.state_folder = state_folder, .root = workspace};
	assert_true(turn_locks_take(&locks, &search, &err));
	assert_int_equal(locks.count, 1);
	prompt(fixture, "7");
	editor_hears_failure(fixture, "7", "ROLLBACK_IN_PROGRESS", "relay", "checkpoint");
	agent_hears_nothing(fixture, 0);
	turn_locks_finish(&locks);
	expect_by_hand(fixture, NULL); // a refused call is not in flight
	prompt(fixture, "8");
	agent_hears(fixture, 0, "'id':3,'method':'session/prompt','params':{'sessionId':'s'}");
	expect_by_hand(fixture, "prompt | session s");
	agent_says(fixture, 0, "'id':3,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':8,'result':{'stopReason':'end_turn'}");
	expect_by_hand(fixture, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_a_prompt_is_under_way_until_its_answer_is_here),
		SYNC_TEST(test_a_prompt_whose_agent_dies_is_over),
		SYNC_TEST(test_terminals_are_under_way_until_nothing_of_them_is_left),
		SYNC_TEST(test_a_prompt_is_refused_while_the_workspace_is_brought_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
