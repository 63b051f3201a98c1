/* SPDX-License-Identifier: MIT */
#include "tests/unit/relay_fixture.h"

#include <stdio.h>
#include <unistd.h>

#include "broker/session/trace.h"
#include "tests/support/facts.h"

/* ---- agents that do not come ---- */

static void test_an_agent_starts_with_the_first_request_and_not_before(void **state)
{
	struct fixture *fixture = *state;
	begin(fixture);
	editor_says(fixture, "'method':'_x'");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':1,'result':{}");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.prepared, 0);
	editor_says(fixture, "'id':0,%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	assert_int_equal(fixture->stage.prepared, 1);
}

static void test_why_an_agent_does_not_start_is_told_each_time(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.start_error, ERROR_NOT_FOUND,
		"starting \"agent\": not found in PATH=/bin");
	begin(fixture);
	for (int i = 1; i < 3; i++) {
		editor_says(fixture, "'id':%d,%s", i, initialize_request);
		editor_hears_failure(fixture, i == 1 ? "1" : "2", "AGENT_NOT_FOUND", "start",
			"not found in PATH=/bin");
		stage_settle(&fixture->stage);
	}
	assert_int_equal(fixture->stage.actor_count, 2);
	assert_int_equal(stage_open_sandboxes(&fixture->stage), 0);
}

static void test_why_a_sandbox_does_not_come_is_told_to_everyone_who_waits(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.ready_error, ERROR_UNAVAILABLE, "connecting: refused");
	fixture->stage.holds_ready = true;
	begin(fixture);
	editor_says(fixture, "'id':1,%s", initialize_request);
	editor_says(fixture, "'method':'_x'");
	editor_says(fixture, "'id':2,'method':'session/new','params':{}");
	stage_settle(&fixture->stage);
	stage_ready(&fixture->stage);
	editor_hears_failure(fixture, "1", "SANDBOX_UNAVAILABLE", "prepare", "refused");
	editor_hears_failure(fixture, "2", "SANDBOX_UNAVAILABLE", "prepare", "refused");
	editor_hears_nothing(fixture);
}

static void test_a_reason_that_the_provider_has_for_itself_is_told_as_it_says(void **state)
{
	static const char *const names[] = {"MOON_HAS_SET", "MOON_IS_FULL"};
	static const char *const members[] = {"\"retryable\":true", "\"retryable\":false"};
	struct fixture *fixture = *state;
	begin(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		error_set_reason(&fixture->stage.ready_error, ERROR_NOT_FOUND, names[i], "dark");
		editor_says(fixture, "'id':1,%s", initialize_request);
		stage_settle(&fixture->stage);
		char *line = editor_line(fixture);
		assert_names(line, names[i]);
		assert_names(line, members[i]);
		free(line);
	}
}

/* ---- an agent that dies ---- */

static void test_every_open_request_is_answered_when_its_agent_dies(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.ignores_kill = true;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	editor_says(fixture, "'id':'x','method':'_x'");
	agent_says(fixture, 0, "'method':'session/update','params':{'n':1}");
	stage_settle(&fixture->stage);
	assert_int_equal(write(agent(fixture, 0)->err, "panic: out of ideas\n", 20), 20);
	actor_exits(agent(fixture, 0), 7, 0);
	editor_hears(fixture, "'method':'session/update','params':{'n':1}");
	char *line = editor_line(fixture);
	assert_string_equal(line,
		"{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"error\":{\"code\":-32603,\"message\":"
		"\"agent \\\"agent\\\" (/bin/agent) exited with status 7\",\"data\":{\"code\":"
		"\"AGENT_EXITED\",\"retryable\":true,\"stage\":\"relay\",\"detail\":"
		"\"panic: out of ideas\\n\"}}}");
	free(line);
	editor_hears_failure(fixture, "\"x\"", "AGENT_EXITED", "relay", "out of ideas");
	editor_hears_nothing(fixture);
	actor_empties(agent(fixture, 0));
}

static void test_what_a_dead_agent_asked_meets_nothing_any_more(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	agent_says(fixture, 0, "'id':'a','method':'_x'");
	editor_hears(fixture, "'id':0,'method':'_x'");
	agent_dies(fixture, 0);
	editor_hears(fixture, "'method':'$/cancel_request','params':{'requestId':0}");
	editor_says(fixture, "'id':0,'result':{}");
	editor_says(fixture, "'id':1,'method':'session/new','params':{}");
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	agent_hears_nothing(fixture, 1);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
	agent_says(fixture, 1, "'id':'b','method':'_y'");
	editor_hears(fixture, "'id':1,'method':'_y'"); // an id is never used twice
}

/* The agent has ended, but something that it started still runs. */
static void test_a_notification_does_not_start_an_agent(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.ignores_kill = true;
	begin_greeted(fixture);
	actor_exits(agent(fixture, 0), 1, 0);
	editor_says(fixture, "'method':'_x'");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.prepared, 1);
	editor_says(fixture, "'id':1,'method':'session/new','params':{}");
	stage_settle(&fixture->stage);
	assert_int_equal(fixture->stage.actor_count, 1); // what it has started still runs
	actor_empties(agent(fixture, 0));
	agent_hears(fixture, 1, "'id':0,%s", initialize_request);
	assert_int_equal(fixture->stage.prepared, 1);
	agent_says(fixture, 1, "'id':0,%s", initialize_result);
	agent_hears(fixture, 1, "'id':1,'method':'session/new','params':{}");
}

/* ---- several sessions ---- */

static void test_sessions_of_one_agent_are_told_apart_by_it(void **state)
{
	struct fixture *fixture = *state;
	begin_with_sessions(fixture, (const char *const[]){"a", "b", NULL});
	editor_says(fixture, "'id':1,'method':'session/prompt','params':{'sessionId':'b'}");
	editor_says(fixture, "'id':2,'method':'session/prompt','params':{'sessionId':'a'}");
	agent_hears(fixture, 0, "'id':3,'method':'session/prompt','params':{'sessionId':'b'}");
	agent_hears(fixture, 0, "'id':4,'method':'session/prompt','params':{'sessionId':'a'}");
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'b'}");
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'b'}");
	agent_says(fixture, 0, "'id':4,'result':{'stopReason':'end_turn'}");
	editor_hears(fixture, "'id':2,'result':{'stopReason':'end_turn'}");
	agent_says(fixture, 0, "'id':3,'result':{'stopReason':'cancelled'}");
	editor_hears(fixture, "'id':1,'result':{'stopReason':'cancelled'}");
	assert_int_equal(fixture->stage.prepared, 1);
}

/* ---- the editor's end ---- */

static void test_an_editor_that_closes_its_side_is_told_once(void **state)
{
	struct fixture *fixture = *state;
	fixture->ends_when_gone = false;
	begin_with_session(fixture);
	assert_false(fixture->is_gone);
	editor_closes(fixture);
	assert_true(fixture->is_gone);
	agent_says(fixture, 0, "'method':'session/update','params':{'n':1}");
	editor_hears(fixture, "'method':'session/update','params':{'n':1}"); // it may still read
	fd_close(&fixture->from_broker);
	agent_says(fixture, 0, "'method':'session/update','params':{'n':2}");
	stage_settle(&fixture->stage); // this checks that it is told once
	assert_false(fixture->is_finished);
}

static void test_an_editor_that_cannot_be_written_to_is_gone(void **state)
{
	struct fixture *fixture = *state;
	fixture->ends_when_gone = false;
	begin_with_session(fixture);
	fd_close(&fixture->from_broker);
	agent_says(fixture, 0, "'method':'session/update','params':{'n':1}");
	stage_settle(&fixture->stage);
	assert_true(fixture->is_gone);
	agent_says(fixture, 0, "'id':'q','method':'_x'");
	agent_hears_failure(fixture, 0, "\"q\"", "EDITOR_GONE", "stop", "closed");
}

static void test_the_last_line_of_an_editor_counts_without_its_newline(void **state)
{
	struct fixture *fixture = *state;
	fixture->ends_when_gone = false;
	begin_greeted(fixture);
	editor_writes(fixture, SPAN_LITERAL("{\"jsonrpc\":\"2.0\",\"method\":\"_last\"}"));
	editor_closes(fixture);
	assert_true(fixture->is_gone);
	agent_hears(fixture, 0, "'method':'_last'");
}

static void test_it_can_be_destroyed_with_everything_in_flight(void **state)
{
	struct fixture *fixture = *state;
	begin_with_session(fixture);
	editor_says(fixture, "'id':'p','method':'session/prompt','params':{'sessionId':'s'}");
	agent_says(fixture, 0, "'id':'q','method':'_x'");
	agent_says(fixture, 0,
		"'id':'r','method':'session/request_permission','params':"
		"{'sessionId':'s','toolCall':{},'options':[]}");
	stage_settle(&fixture->stage);
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
	actor_assert_told(agent(fixture, 0), "destroyed ");
	assert_int_equal(stage_open_sandboxes(&fixture->stage), 0);
}

/* ---- the trace ---- */

static void assert_traced(
	const char *text, const char *hop, const char *direction, const char *message)
{
	char line[1024];
	snprintf(line, sizeof(line), "\"hop\":\"%s\",\"direction\":\"%s\",%s}\n", hop, direction,
		message);
	for (char *quote = line; (quote = strchr(quote, '\'')) != NULL;) {
		*quote = '"';
	}
	if (!strstr(text, line)) {
		print_error("%s", text);
		fail_msg("not traced: %s", line);
	}
}

static void test_every_message_of_every_hop_is_traced_as_it_was_on_the_wire(void **state)
{
	struct fixture *fixture = *state;
	static char text[65536];
	struct error err;
	char path[] = "/tmp/test-relay-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	struct trace *trace = trace_open(path, NULL, &err);
	assert_non_null(trace);
	begin_traced(fixture, trace);
	editor_says(fixture, "'id':'i',%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	agent_writes(fixture, 0, SPAN_LITERAL("Welcome\n"));
	agent_says(fixture, 0, "'id':0,'error':{'code':1,'message':'no'}");
	editor_hears(fixture, "'id':'i','error':{'code':1,'message':'no'}");
	editor_writes(fixture, SPAN_LITERAL("junk\n"));
	editor_hears_failure(fixture, "null", "PARSE_ERROR", "relay", "");
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	assert_traced(text, "editor", "in",
		"'message':{'jsonrpc':'2.0','id':'i','method':'initialize','params':"
		"{'protocolVersion':1,'clientCapabilities':{}}}");
	assert_traced(text, "agent 1", "out",
		"'message':{'jsonrpc':'2.0','id':0,'method':'initialize','params':"
		"{'protocolVersion':1,'clientCapabilities':{}}}");
	assert_traced(text, "agent 1", "in", "'noise':'Welcome','length':7");
	assert_traced(text, "agent 1", "in",
		"'message':{'jsonrpc':'2.0','id':0,'error':{'code':1,'message':'no'}}");
	assert_traced(text, "editor", "out",
		"'message':{'jsonrpc':'2.0','id':'i','error':{'code':1,'message':'no'}}");
	assert_traced(text, "editor", "in", "'noise':'junk','length':4");
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
	trace_close(trace);
	close(fd);
	unlink(path);
}

/* A message that waits because somebody reads slowly was received only once. */
static void test_a_message_that_waits_is_traced_once(void **state)
{
	struct fixture *fixture = *state;
	static char text[2 * 1024 * 1024];
	struct error err;
	char path[] = "/tmp/test-relay-XXXXXX";
	int fd = mkstemp(path);
	struct trace *trace = trace_open(path, NULL, &err);
	char *big = mem_alloc_zero(150001);
	memset(big, 'x', 150000);
	profile_of(fixture)->max_queue = 1000;
	begin_traced(fixture, trace);
	editor_says(fixture, "'id':'i',%s", initialize_request);
	agent_hears(fixture, 0, "'id':0,%s", initialize_request);
	editor_says(fixture, "'method':'_fill','params':{'t':'%s'}", big);
	editor_says(fixture, "'method':'_waits'");
	stage_settle(&fixture->stage);
	free(agent_next_line(fixture, 0));
	agent_hears(fixture, 0, "'method':'_waits'");
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(len > 0);
	text[len] = '\0';
	const char *first = strstr(text, "_waits");
	assert_non_null(first);
	const char *second = strstr(first + 1, "_waits"); // as it was sent
	assert_non_null(second);
	assert_null(strstr(second + 1, "_waits"));
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
	trace_close(trace);
	free(big);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RELAY_TEST(test_an_agent_starts_with_the_first_request_and_not_before),
		RELAY_TEST(test_why_an_agent_does_not_start_is_told_each_time),
		RELAY_TEST(test_why_a_sandbox_does_not_come_is_told_to_everyone_who_waits),
		RELAY_TEST(test_a_reason_that_the_provider_has_for_itself_is_told_as_it_says),
		RELAY_TEST(test_every_open_request_is_answered_when_its_agent_dies),
		RELAY_TEST(test_what_a_dead_agent_asked_meets_nothing_any_more),
		RELAY_TEST(test_a_notification_does_not_start_an_agent),
		RELAY_TEST(test_sessions_of_one_agent_are_told_apart_by_it),
		RELAY_TEST(test_an_editor_that_closes_its_side_is_told_once),
		RELAY_TEST(test_an_editor_that_cannot_be_written_to_is_gone),
		RELAY_TEST(test_the_last_line_of_an_editor_counts_without_its_newline),
		RELAY_TEST(test_it_can_be_destroyed_with_everything_in_flight),
		RELAY_TEST(test_every_message_of_every_hop_is_traced_as_it_was_on_the_wire),
		RELAY_TEST(test_a_message_that_waits_is_traced_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
