/* SPDX-License-Identifier: MIT */
#include "base/fd.h"
#include "tests/unit/roots_fixture.h"

#include <stdio.h>
#include <unistd.h>

/* Backpressure in both directions, and what becomes of it when somebody ends. */
enum {
	MAX_QUEUE = 64 * 1024,
	BIG = 100 * 1000,
	PIPE = 64 * 1024,
	FILLS = 2,                                      // so many that no request may wait
	ALL_FILLS = FILLS + RELAY_UNREAD_MAX / BIG + 1, // so many that no message may wait
};

static int set_up_slow(void **state)
{
	set_up(state);
	struct fixture *fixture = *state;
	profile_of(fixture)->max_queue = MAX_QUEUE;
	return 0;
}

static char *big_text(void)
{
	char *text = mem_alloc_zero(BIG + 1);
	memset(text, 'x', BIG);
	return text;
}

/*
 * Sends an agent that does not read more than its queue takes: of requests, or of other messages.
 */
static void fill_agent(struct fixture *fixture, int fills)
{
	char *text = big_text();
	for (int i = 0; i < fills; i++) {
		editor_says(fixture, "'method':'_fill','params':{'text':'%s'}", text);
		stage_settle(&fixture->stage);
	}
	free(text);
}

static void agent_takes_fill(struct fixture *fixture, int index, int fills)
{
	for (int i = 0; i < fills; i++) {
		char *line = agent_next_line(fixture, index);
		assert_true(strlen(line) > BIG);
		free(line);
	}
}

/* ---- an agent that does not read ---- */

static void test_requests_to_an_agent_that_does_not_read_are_refused(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, FILLS);
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_hears_failure(fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-queue");
	agent_takes_fill(fixture, 0, FILLS);
	editor_says(fixture, "'id':2,'method':'x/y'");
	agent_hears(fixture, 0, "'id':2,'method':'x/y'");
}

static void test_notifications_to_it_wait_in_its_queue_and_hold_up_nothing(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, FILLS);
	editor_says(fixture, "'method':'_first'");
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_says(fixture, "'method':'_second'");
	editor_hears_failure(fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "relay", "max-queue");
	agent_takes_fill(fixture, 0, FILLS);
	agent_hears(fixture, 0, "'method':'_first'");
	agent_hears(fixture, 0, "'method':'_second'");
}

static void test_it_holds_up_no_other_agent(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_queue = MAX_QUEUE;
	begin_with_two(fixture);
	agent_says(fixture, 0, "'id':'a','method':'x/y'");
	editor_hears(fixture, "'id':0,'method':'x/y'");
	fill_agent(fixture, FILLS);
	editor_says(fixture, "'method':'_waits'");
	editor_says(fixture, "'id':0,'result':7");
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'s~2'}");
	agent_hears(fixture, 1, "'id':2,'method':'session/prompt','params':{'sessionId':'s'}");
	agent_takes_fill(fixture, 0, FILLS);
	agent_hears(fixture, 0, "'method':'_waits'");
	agent_hears(fixture, 0, "'id':'a','result':7");
}

static void test_what_it_holds_is_bounded_and_then_the_editor_waits(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'_first'");
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_says(fixture, "'method':'_second'");
	editor_hears_nothing(fixture); // the request waits behind the notification
	agent_takes_fill(fixture, 0, ALL_FILLS);
	agent_hears(fixture, 0, "'method':'_first'");
	agent_hears(fixture, 0, "'id':2,'method':'x/y'");
	agent_hears(fixture, 0, "'method':'_second'");
}

static void test_a_cancel_goes_to_it_all_the_same(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':1,'method':'_broker/no/such'");
	editor_hears_failure(fixture, "1", "METHOD_NOT_FOUND", "relay", ""); // nobody waits
	agent_takes_fill(fixture, 0, ALL_FILLS);
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
}

static void test_answers_to_it_wait(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a','method':'x/y'");
	editor_hears(fixture, "'id':0,'method':'x/y'");
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'id':0,'result':7");
	agent_takes_fill(fixture, 0, ALL_FILLS);
	agent_hears(fixture, 0, "'id':'a','result':7");
}

static void test_the_death_of_a_slow_agent_lets_the_editor_go_on(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'_waits'");
	editor_says(fixture, "'id':7,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_nothing(fixture);
	actor_is_lost(agent(fixture, 0), "the link is down");
	editor_hears_failure(fixture, "7", "SESSION_LOST", "session", "");
}

static void test_an_agent_that_closes_its_input_lets_the_editor_go_on(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'_waits'");
	editor_says(fixture, "'id':7,'method':'_broker/no/such'");
	editor_hears_nothing(fixture);
	actor_closes(agent(fixture, 0), &agent(fixture, 0)->in);
	editor_hears_failure(fixture, "7", "METHOD_NOT_FOUND", "relay", "");
}

static void test_requests_to_an_agent_that_closed_its_input_are_answered(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->drain_timeout_ms = 20;
	begin_with_session(fixture);
	actor_closes(agent(fixture, 0), &agent(fixture, 0)->in);
	editor_says(fixture, "'id':7,'method':'session/prompt','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "relay", "closed its input");
}

/* While its message waits, the broker does not read it, and so would never see its end of file. */
static void test_an_editor_that_leaves_meanwhile_is_noticed(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->stop_eof_ms = profile_of(fixture)->stop_term_ms = 50;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'_waits'");
	stage_settle(&fixture->stage);
	wait_ms(fixture, 700); // it counts as there until it closes its side
	assert_false(fixture->is_gone);
	editor_closes(fixture);
	stage_until(&fixture->stage, &fixture->is_gone);
	stage_until(&fixture->stage, &fixture->is_finished);
}

static void test_an_editor_that_leaves_is_heard_out_by_a_slow_agent(void **state)
{
	struct fixture *fixture = *state;
	fixture->ends_when_gone = false;
	begin_with_session(fixture);
	fill_agent(fixture, ALL_FILLS);
	editor_says(fixture, "'method':'_waits'");
	editor_closes(fixture);
	wait_ms(fixture, 700);
	assert_false(fixture->is_gone); // within stop-eof-timeout
	agent_takes_fill(fixture, 0, ALL_FILLS);
	agent_hears(fixture, 0, "'method':'_waits'");
	stage_until(&fixture->stage, &fixture->is_gone);
}

/* ---- an editor that does not read ---- */

static void test_an_agent_waits_for_an_editor_that_does_not_read(void **state)
{
	struct fixture *fixture = *state;
	enum { UPDATES = 10000 };
	begin_with_session(fixture);
	size_t sent = 0;
	struct buf all;
	buf_init(&all, 1 << 24);
	for (int i = 0; i < UPDATES; i++) {
		assert_true(buf_append_format(&all, NULL,
			"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":"
			"{\"sessionId\":\"s\",\"n\":%d}}\n",
			i));
	}
	struct span rest = buf_span(&all);
	struct actor *actor = agent(fixture, 0);
	for (int i = 0; i < 200; i++) { // until nothing moves
		ssize_t wrote = write(actor->out, rest.data, rest.len);
		if (wrote > 0) {
			rest = (struct span){rest.data + wrote, rest.len - (size_t)wrote};
			sent += (size_t)wrote;
		}
		stage_settle(&fixture->stage);
	}
	/*
	 * The agent's pipe, the queue and one read, and the editor's pipe hold this much; the agent
	 * still has the rest.
	 */
	assert_in_range(sent, MAX_QUEUE, MAX_QUEUE + 3 * PIPE + FD_PIPE_LARGE);
	assert_true(rest.len > 0);
	int heard = 0;
	for (; heard < UPDATES; heard++) {
		if (rest.len > 0) {
			ssize_t wrote = write(actor->out, rest.data, rest.len);
			wrote = wrote > 0 ? wrote : 0;
			rest = (struct span){rest.data + wrote, rest.len - (size_t)wrote};
		}
		editor_hears(fixture, "'method':'session/update','params':{'sessionId':'s','n':%d}",
			heard);
	}
	editor_hears_nothing(fixture);
	buf_finish(&all);
}

static void test_a_cancel_passes_an_editor_that_does_not_read(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	char *text = big_text();
	for (int i = 0; i < 2; i++) {
		agent_says(fixture, 0, "'method':'session/update','params':{'text':'%s'}", text);
	}
	free(text);
	stage_settle(&fixture->stage);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
}

static void test_an_editor_that_never_reads_its_answers_is_not_read_either(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	size_t sent = 0;
	char line[256];
	int len = snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":\"%0200d\",\"method\":\"_broker/none\"}\n", 1);
	for (int i = 0; i < 100000; i++) {
		ssize_t wrote = write(fixture->to_broker, line, (size_t)len);
		if (wrote < 0) {
			ev_run(fixture->stage.loop, EVRUN_NOWAIT);
			wrote = write(fixture->to_broker, line, (size_t)len);
		}
		if (wrote < 0) {
			stage_settle(&fixture->stage);
			if (write(fixture->to_broker, line, (size_t)len) < 0) {
				break;
			}
		}
		sent += wrote > 0 ? (size_t)wrote : 0;
	}
	assert_in_range(sent, MAX_QUEUE, 2 * RELAY_EDITOR_RESERVE);
	fd_close(&fixture->from_broker); // and goes away
	stage_until(&fixture->stage, &fixture->is_finished);
	assert_true(fixture->is_gone);
}

/* ---- messages that wait until the sandbox is ready ---- */

static void test_what_waits_for_the_sandbox_is_bounded_and_keeps_its_order(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->max_queue = 32 * 1024; // each is counted as more than 1 KiB
	fixture->stage.holds_ready = true;
	begin(fixture);
	editor_says(fixture, "'id':0,%s", initialize_request);
	int sent = 0;
	for (; sent < 100; sent++) {
		editor_says(fixture, "'method':'_%d'", sent);
	}
	editor_says(fixture, "'id':1,'method':'x/y'");
	editor_hears_failure(fixture, "1", "RESOURCE_LIMIT_EXCEEDED", "prepare", "max-queue");
	stage_ready(&fixture->stage);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	int heard = 0;
	for (char *line; heard < 20; heard++) {
		char expected[64];
		snprintf(expected, sizeof(expected), "{\"jsonrpc\":\"2.0\",\"method\":\"_%d\"}",
			heard);
		line = agent_next_line(fixture, 0);
		assert_string_equal(line, expected);
		free(line);
	}
}

#define SLOW_TEST(function) cmocka_unit_test_setup_teardown(function, set_up_slow, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SLOW_TEST(test_requests_to_an_agent_that_does_not_read_are_refused),
		SLOW_TEST(test_notifications_to_it_wait_in_its_queue_and_hold_up_nothing),
		ROOTS_TEST(test_it_holds_up_no_other_agent),
		SLOW_TEST(test_what_it_holds_is_bounded_and_then_the_editor_waits),
		SLOW_TEST(test_a_cancel_goes_to_it_all_the_same),
		SLOW_TEST(test_answers_to_it_wait),
		SLOW_TEST(test_the_death_of_a_slow_agent_lets_the_editor_go_on),
		SLOW_TEST(test_an_agent_that_closes_its_input_lets_the_editor_go_on),
		SLOW_TEST(test_requests_to_an_agent_that_closed_its_input_are_answered),
		SLOW_TEST(test_an_editor_that_leaves_meanwhile_is_noticed),
		SLOW_TEST(test_an_editor_that_leaves_is_heard_out_by_a_slow_agent),
		SLOW_TEST(test_an_agent_waits_for_an_editor_that_does_not_read),
		SLOW_TEST(test_a_cancel_passes_an_editor_that_does_not_read),
		SLOW_TEST(test_an_editor_that_never_reads_its_answers_is_not_read_either),
		SLOW_TEST(test_what_waits_for_the_sandbox_is_bounded_and_keeps_its_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
