/* SPDX-License-Identifier: MIT */
#include "broker/methods/sync_methods.h"

#include <signal.h>

#include "tests/unit/relay_sync_fixture.h"

/* ---- requests and their answers ---- */

static void hear(struct fixture *fixture, const char *words)
{
	char *line = editor_line(fixture);
	while (strstr(line, "session/update")) {
		free(line);
		line = editor_line(fixture);
	}
	if (!strstr(line, words)) {
		fail_msg("%s is not in %s", words, line);
	}
	free(line);
}

static void ask(struct fixture *fixture, const char *method, const char *params)
{
	editor_says(fixture, "'id':7,'method':'_broker/%s','params':{'sessionId':'s'%s}", method,
		params);
}

static void expect_file(const char *where, const char *name, const char *text)
{
	char path[300];
	char found[64] = "";
	snprintf(path, sizeof(path), "%s/%s", where, name);
	FILE *file = fopen(path, "r");
	if (!text) {
		assert_null(file);
		return;
	}
	assert_non_null(file);
	found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(found, text);
}

static void test_the_methods_answer_what_is_wrong(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	editor_says(fixture, "'id':1,'method':'_broker/session/status','params':{}");
	editor_hears_failure(fixture, "1", "INVALID_PARAMS", "sync", "sessionId");
	editor_says(
		fixture, "'id':2,'method':'_broker/checkpoint/diff','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "2", "INVALID_PARAMS", "sync", "from");
	editor_says(fixture,
		"'id':3,'method':'_broker/checkpoint/rollback','params':{'sessionId':'s'}");
	editor_hears_failure(fixture, "3", "INVALID_PARAMS", "sync", "checkpoint");
	editor_says(fixture, "'id':4,'method':'_broker/session/status','params':"
			     "{'sessionId':'s'}");
	char *status = editor_line(fixture);
	assert_non_null(strstr(status, "\"state\":\"active\""));
	assert_non_null(strstr(status, "\"sync\":\"turn-bidirectional\""));
	free(status);
	editor_says(fixture, "'id':5,'method':'_broker/checkpoint/list','params':"
			     "{'sessionId':'s'}");
	char *list = editor_line(fixture);
	assert_non_null(strstr(list, "\"id\":5,\"result\":{\"checkpoints\":[{\"checkpoint\":1,"));
	free(list);
}

static void test_a_session_without_a_workspace_of_its_own_is_not_synced(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->sync.mode = SYNC_MODE_NONE;
	begin_synced(fixture);
	static const char *const methods[] = {"sync", "checkpoint/create", "checkpoint/list",
		"checkpoint/diff", "checkpoint/rollback"};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		ask(fixture, methods[i], "");
		editor_hears_failure(fixture, "7", "NOT_SYNCED", "sync", "sync = none");
	}
	ask(fixture, "session/status", "");
	hear(fixture, "\"sync\":\"none\",\"transport\":null,\"lastSync\":null");
}

static void test_a_sync_brings_both_sides_in_step_and_says_how(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	write_file(runtime, "theirs", "1");
	write_file(workspace, "mine", "2");
	ask(fixture, "sync", "");
	hear(fixture, "\"toLocal\":{\"added\":1,\"changed\":0,\"deleted\":0},"
		      "\"toRuntime\":{\"added\":1,\"changed\":0,\"deleted\":0}");
	expect_file(workspace, "theirs", "1");
	expect_file(runtime, "mine", "2");
}

static void test_a_sync_that_fails_is_answered_with_why(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	dir_transport_hooks.fail_collects = 1;
	ask(fixture, "sync", "");
	hear(fixture, "\"data\":{\"code\":\"SANDBOX_UNAVAILABLE\",\"retryable\":true,"
		      "\"stage\":\"sync\"");
	ask(fixture, "session/status", "");
	hear(fixture, "the link is down");
}

static void test_a_checkpoint_has_the_name_it_is_given(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	write_file(workspace, "f", "1");
	ask(fixture, "checkpoint/create", ",'name':'before \\'lunch\\''");
	hear(fixture, "\"checkpoint\":2");
	ask(fixture, "checkpoint/list", "");
	hear(fixture, "\"reason\":\"before \\\"lunch\\\"\",\"sessionId\":\"s\"");
}

static void test_a_diff_is_a_patch_or_numbers_and_is_cut_where_it_is_long(void **state)
{
	struct fixture *fixture = *state;
	char command[256];
	begin_synced(fixture);
	write_file(workspace, "f", "one\n");
	ask(fixture, "sync", "");
	hear(fixture, "\"checkpoint\":2");
	ask(fixture, "checkpoint/diff", ",'from':1");
	hear(fixture, "\"from\":1,\"to\":2,\"diff\":\"diff --git a/f b/f\\nnew file mode");
	ask(fixture, "checkpoint/diff", ",'from':'2','to':1,'stat':true");
	hear(fixture, "\"from\":2,\"to\":1,\"diff\":\" f | 1 -\\n 1 file changed");
	ask(fixture, "checkpoint/diff", ",'from':9");
	hear(fixture, "\"error\"");
	snprintf(command, sizeof(command), "seq 900000 > %s/long", workspace);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	ask(fixture, "sync", "");
	hear(fixture, "\"checkpoint\":3");
	ask(fixture, "checkpoint/diff", ",'from':2,'to':3");
	hear(fixture, "\"truncated\":true");
}

static void test_a_rollback_brings_both_sides_back(void **state)
{
	struct fixture *fixture = *state;
	write_file(workspace, "f", "old");
	begin_synced(fixture);
	write_file(workspace, "f", "new");
	write_file(runtime, "g", "theirs");
	ask(fixture, "checkpoint/rollback", ",'checkpoint':-1"); // the newest, before the sync
	hear(fixture, "\"id\":7,\"result\"");
	expect_file(workspace, "f", "old");
	expect_file(runtime, "f", "old");
	expect_file(workspace, "g", NULL);
	expect_file(runtime, "g", NULL);
	ask(fixture, "checkpoint/rollback", ",'checkpoint':99");
	hear(fixture, "\"error\"");
	ask(fixture, "checkpoint/rollback", ",'checkpoint':2"); // what was before it
	hear(fixture, "\"id\":7,\"result\"");
	expect_file(workspace, "f", "new");
	expect_file(runtime, "g", "theirs");
}

static void test_a_terminal_that_runs_is_in_flight(void **state)
{
	struct fixture *fixture = *state;
	begin_synced(fixture);
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	agent_says(fixture, 0,
		"'id':'c','method':'terminal/create','params':{'sessionId':'s','command':'make'}");
	agent_hears(fixture, 0, "'id':'c','result':{'terminalId':'term-1'}");
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	editor_hears_failure(
		fixture, "7", "TOOLS_IN_FLIGHT", "sync", "in flight: term-1 in session s: cancel");
	actor_dies(agent(fixture, 1), 0, 0);
	stage_settle(&fixture->stage);
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	hear(fixture, "\"id\":7,\"result\"");
}

/* A released terminal: its command is killed, but some of its processes may still run. */
static void begin_with_released(struct fixture *fixture)
{
	begin_synced(fixture);
	profile_of(fixture)->toolhost = TOOLHOST_BROKER;
	agent_says(fixture, 0,
		"'id':'c','method':'terminal/create','params':{'sessionId':'s','command':'make'}");
	agent_hears(fixture, 0, "'id':'c','result':{'terminalId':'term-1'}");
	agent_says(fixture, 0,
		"'id':'r','method':'terminal/release','params':{'sessionId':'s','terminalId':"
		"'term-1'}");
	actor_exits(agent(fixture, 1), 0, SIGKILL);
	agent_hears(fixture, 0, "'id':'r','result':{}");
}

static void test_what_is_about_to_end_is_waited_for(void **state)
{
	struct fixture *fixture = *state;
	begin_with_released(fixture);
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	stage_settle(&fixture->stage);
	editor_hears_nothing(fixture);
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	editor_hears_failure(fixture, "7", "ROLLBACK_IN_PROGRESS", "sync", "already");
	prompt(fixture, "8");
	editor_hears_failure(fixture, "8", "ROLLBACK_IN_PROGRESS", "sync", "rolled back");
	actor_empties(agent(fixture, 1));
	hear(fixture, "\"id\":7,\"result\"");
}

static void test_what_does_not_end_in_time_is_in_flight(void **state)
{
	struct fixture *fixture = *state;
	begin_with_released(fixture);
	profile_of(fixture)->pause_drain_timeout_ms = 50;
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	editor_hears_failure(fixture, "7", "TOOLS_IN_FLIGHT", "sync", "(pause-drain-timeout)");
	actor_empties(agent(fixture, 1));
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1"); // it was not left rolling back
	hear(fixture, "\"id\":7,\"result\"");
}

static void test_the_end_of_the_agent_is_the_end_of_the_wait(void **state)
{
	struct fixture *fixture = *state;
	begin_with_released(fixture);
	ask(fixture, "checkpoint/rollback", ",'checkpoint':1");
	stage_settle(&fixture->stage);
	fixture->stage.ignores_kill = true;
	actor_exits(agent(fixture, 0), 1, 0);
	editor_hears_failure(fixture, "7", "AGENT_EXITED", "sync", "has ended");
	actor_empties(agent(fixture, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_the_methods_answer_what_is_wrong),
		SYNC_TEST(test_a_session_without_a_workspace_of_its_own_is_not_synced),
		SYNC_TEST(test_a_sync_brings_both_sides_in_step_and_says_how),
		SYNC_TEST(test_a_sync_that_fails_is_answered_with_why),
		SYNC_TEST(test_a_checkpoint_has_the_name_it_is_given),
		SYNC_TEST(test_a_diff_is_a_patch_or_numbers_and_is_cut_where_it_is_long),
		SYNC_TEST(test_a_rollback_brings_both_sides_back),
		SYNC_TEST(test_a_terminal_that_runs_is_in_flight),
		SYNC_TEST(test_what_is_about_to_end_is_waited_for),
		SYNC_TEST(test_what_does_not_end_in_time_is_in_flight),
		SYNC_TEST(test_the_end_of_the_agent_is_the_end_of_the_wait),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
