/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_deletions.h"

#include "tests/unit/grant_fixture.h"
#include "tests/unit/relay_sync_fixture.h"
#include "tests/support/facts.h"

/* The outcome of many deletions by the agent, depending on who is asked and on the answer. */

enum { FILES = 30 };

static const char yes[] = "{'outcome':{'outcome':'selected','optionId':'delete'}}";
static const char no[] = "{'outcome':{'outcome':'selected','optionId':'give-back'}}";

static void make_files(void)
{
	char name[16];
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%02d", i);
		write_file(workspace, name, name);
	}
}

static size_t files_in(const char *where)
{
	char command[256];
	snprintf(command, sizeof(command), "ls %s | grep -c '^f'", where);
	FILE *out = popen(command, "r");
	assert_non_null(out);
	size_t count = 0;
	assert_int_equal(fscanf(out, "%zu", &count), 1); // NOLINT(cert-err34-c): of our own
	pclose(out);
	return count;
}

static void delete_there(void)
{
	char command[256];
	snprintf(command, sizeof(command), "rm %s/f*", runtime);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
}

/* A session whose agent has deleted all files, and then answered a prompt. */
static void delete_in_a_turn(struct fixture *fixture)
{
	make_files();
	begin_synced(fixture);
	prompt(fixture, "7");
	agent_hears_prompt(fixture, 2);
	delete_there();
	agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
}

/* The next line, except for one that says that a slow sync is under way; owned by the caller. */
static char *next_line(struct fixture *fixture)
{
	char *line = editor_line(fixture);
	while (strstr(line, "\"title\":\"Syncing workspace")) {
		free(line);
		line = editor_line(fixture);
	}
	return line;
}

static void hear(struct fixture *fixture, const char *facts)
{
	char *line = next_line(fixture);
	assert_names(line, facts);
	free(line);
}

static void hear_question(struct fixture *fixture, int id)
{
	char start[128];
	char *question = next_line(fixture);
	snprintf(start, sizeof(start), "\"id\":%d,\"method\":\"session/request_permission\"", id);
	assert_non_null(strstr(question, start));
	assert_non_null(strstr(question, "\"sessionId\":\"s\""));
	assert_non_null(strstr(question, "\"title\":\"acp-broker asks because of `mode = pass`: "
					 "Delete 30 of the 30 files in `"));
	assert_non_null(strstr(question, "\"kind\":\"delete\""));
	assert_non_null(strstr(question, "\\n- `f00`\\n- `f01`\\n"));
	assert_non_null(strstr(question, "\\n- `f19`\\n- and 10 more"));
	free(question);
}

static void hear_closed(struct fixture *fixture, int id, const char *status)
{
	char words[128];
	char *line = next_line(fixture);
	snprintf(words, sizeof(words), "\"toolCallId\":\"acp-broker-%d\",\"title\":\"acp-broker",
		id);
	assert_non_null(strstr(line, words));
	snprintf(words, sizeof(words), "\"status\":\"%s\"", status);
	assert_non_null(strstr(line, words));
	free(line);
}

static void hear_given_back(struct fixture *fixture)
{
	hear(fixture, "deleted 30 | kept here");
}

static void hear_end_of_turn(struct fixture *fixture)
{
	hear(fixture, "\"id\":7,\"result\":{\"stopReason\":\"end_turn\"}");
	editor_hears_nothing(fixture);
}

static void expect_files(size_t here, size_t there)
{
	assert_int_equal(files_in(workspace), here);
	assert_int_equal(files_in(runtime), there);
}

/* ---- answers ---- */

static void test_a_yes_deletes_them_here_before_the_prompt_is_answered(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	expect_files(FILES, 0);
	editor_says(fixture, "'id':0,'result':%s", yes);
	hear_closed(fixture, 0, "completed");
	hear(fixture, "30 of your files | deleted");
	hear_end_of_turn(fixture);
	expect_files(0, 0);
}

static void test_everything_else_gives_them_back(void **state)
{
	static const char *const answers[] = {
		no,
		"{'outcome':{'outcome':'cancelled'}}",
		"{'outcome':{'outcome':'selected','optionId':'unknown'}}",
		"{}",
	};
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	for (size_t i = 0; i < ARRAY_LENGTH(answers); i++) {
		hear_question(fixture, (int)i);
		editor_says(fixture, "'id':%zu,'result':%s", i, answers[i]);
		hear_closed(fixture, (int)i, "failed");
		hear_given_back(fixture);
		hear_end_of_turn(fixture);
		expect_files(FILES, FILES);
		prompt(fixture, "7");
		agent_hears_prompt(fixture, (int)i + 3);
		delete_there();
		agent_says(fixture, 0, "'id':%zu,'result':{'stopReason':'end_turn'}", i + 3);
	}
	hear_question(fixture, (int)ARRAY_LENGTH(answers));
	editor_says(fixture, "'id':%zu,'error':{'code':-32601,'message':'no such method'}",
		ARRAY_LENGTH(answers));
	hear_closed(fixture, (int)ARRAY_LENGTH(answers), "failed");
	hear_given_back(fixture);
	expect_files(FILES, FILES);
}

static void test_a_prompt_waits_for_the_answer_too(void **state)
{
	struct fixture *fixture = *state;
	make_files();
	begin_synced(fixture);
	delete_there();
	prompt(fixture, "7");
	hear_question(fixture, 0);
	agent_hears_nothing(fixture, 0);
	editor_says(fixture, "'id':0,'result':%s", yes);
	agent_hears_prompt(fixture, 2);
	expect_files(0, 0);
}

static void test_a_method_of_the_brokers_asks_too_but_for_a_rollback(void **state)
{
	struct fixture *fixture = *state;
	make_files();
	begin_synced(fixture);
	delete_there();
	editor_says(fixture, "'id':7,'method':'_broker/sync','params':{'sessionId':'s'}");
	hear_question(fixture, 0);
	editor_says(fixture, "'id':0,'result':%s", no);
	hear_closed(fixture, 0, "failed");
	hear_given_back(fixture);
	hear(fixture, "\"id\":7,\"result\":");
	delete_there();
	editor_says(fixture, "'id':8,'method':'_broker/checkpoint/rollback','params':{'sessionId':"
			     "'s','checkpoint':1}");
	hear_given_back(fixture);
	hear(fixture, "\"id\":8,\"result\":");
	expect_files(FILES, FILES);
}

/* ---- nobody answers ---- */

static void test_a_cancel_is_a_no(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	editor_says(fixture, "'method':'session/cancel','params':{'sessionId':'s'}");
	hear(fixture, "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}");
	hear_closed(fixture, 0, "failed");
	hear_given_back(fixture);
	hear_end_of_turn(fixture);
	expect_files(FILES, FILES);
	editor_says(fixture, "'id':0,'result':%s", yes); // too late
	stage_settle(&fixture->stage);
	expect_files(FILES, FILES);
}

static void test_permission_timeout_is_a_no(void **state)
{
	struct fixture *fixture = *state;
	profile_of(fixture)->permission_timeout_ms = 50;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	hear(fixture, "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}");
	hear_closed(fixture, 0, "failed");
	hear_given_back(fixture);
	hear_end_of_turn(fixture);
	expect_files(FILES, FILES);
}

static void test_an_editor_that_leaves_says_no(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	editor_closes(fixture);
	agent_hears(fixture, 0, "'method':'session/cancel','params':{'sessionId':'s'}");
	agent_hears_end(fixture, 0);
	agent_dies(fixture, 0);
	while (!fixture->is_finished) {
		stage_wait_turn(&fixture->stage);
	}
	expect_files(FILES, FILES);
}

static void test_an_agent_that_dies_says_no(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	agent_dies(fixture, 0);
	hear(fixture, "\"method\":\"$/cancel_request\",\"params\":{\"requestId\":0}");
	editor_closes(fixture);
	while (stage_open_sandboxes(&fixture->stage) > 0) {
		stage_wait_turn(&fixture->stage);
	}
	expect_files(FILES, FILES);
}

static void test_a_relay_that_is_destroyed_asks_no_more(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	relay_destroy(fixture->relay);
	fixture->relay = NULL;
	expect_files(FILES, 0); // nothing was done yet, nothing is lost
}

/* ---- two sessions ---- */

static void test_another_session_waits_and_its_prompt_can_be_cancelled(void **state)
{
	struct fixture *fixture = *state;
	delete_in_a_turn(fixture);
	hear_question(fixture, 0);
	ask_for_session(fixture);
	agent_hears(fixture, 0, "'id':3,'method':'session/new','params':{'cwd':'%s'}", runtime);
	agent_says(fixture, 0, "'id':3,'result':{'sessionId':'t'}");
	hear(fixture, "\"id\":\"new\",\"result\":{\"sessionId\":\"t\"}");
	editor_says(fixture, "'id':8,'method':'session/prompt','params':{'sessionId':'t'}");
	editor_says(fixture, "'id':9,'method':'session/prompt','params':{'sessionId':'t'}");
	editor_says(fixture, "'method':'$/cancel_request','params':{'requestId':8}");
	hear(fixture, "\"id\":8,\"result\":{\"stopReason\":\"cancelled\"}");
	agent_hears_nothing(fixture, 0);
	editor_says(fixture, "'id':0,'result':%s", yes);
	hear_closed(fixture, 0, "completed");
	hear(fixture, "30 of your files | deleted");
	hear(fixture, "\"id\":7,\"result\":{\"stopReason\":\"end_turn\"}");
	agent_hears(fixture, 0, "'id':4,'method':'session/prompt','params':{'sessionId':'t'}");
	expect_files(0, 0);
}

/* ---- policy ---- */

static void decide_by(struct fixture *fixture, const char *const *lines, bool is_followed)
{
	stage_policy(&fixture->stage, lines);
	delete_in_a_turn(fixture);
	hear(fixture, is_followed ? "30 of your files | deleted" : "were kept here");
	hear_end_of_turn(fixture);
	expect_files(is_followed ? 0 : FILES, is_followed ? 0 : FILES);
}

static void test_approve_all_follows_them(void **state)
{
	decide_by(*state, POLICY("mode = approve-all"), true);
}

static void test_deny_all_gives_them_back(void **state)
{
	decide_by(*state, POLICY("mode = deny-all"), false);
}

static void test_a_rule_about_writing_decides(void **state)
{
	decide_by(*state, POLICY("mode = approve-all", "deny = write"), false);
}

static void test_what_is_gone_here_is_asked_about_whatever_policy_says(void **state)
{
	struct fixture *fixture = *state;
	char command[256];
	stage_policy(&fixture->stage, POLICY("mode = approve-all"));
	make_files();
	begin_synced(fixture);
	snprintf(command, sizeof(command), "rm %s/f*", workspace);
	assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): of the test's own
	for (int i = 0; i < 2; i++) {
		prompt(fixture, i == 0 ? "7" : "8");
		hear(fixture, i == 0 ? "session/request_permission | 30 of the 30 | sandbox | f19"
				     : "session/request_permission | 31 of the 31 | sandbox");
		agent_hears_nothing(fixture, 0);
		expect_files(0, FILES + (size_t)i);
		editor_says(fixture, "'id':%d,'result':%s", i, i == 0 ? no : yes);
		hear_closed(fixture, i, i == 0 ? "failed" : "completed");
		if (i == 0) {
			hear(fixture, "30 of 30 | sandbox");
			agent_hears_prompt(fixture, 2);
			expect_files(0, FILES);
			write_file(runtime, "f99", "by the agent");
			agent_says(fixture, 0, "'id':2,'result':{'stopReason':'end_turn'}");
			hear_end_of_turn(fixture);
			snprintf(command, sizeof(command), "rm %s/f99", workspace);
			assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): likewise
		}
	}
	agent_hears_prompt(fixture, 3);
	expect_files(0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SYNC_TEST(test_a_yes_deletes_them_here_before_the_prompt_is_answered),
		SYNC_TEST(test_everything_else_gives_them_back),
		SYNC_TEST(test_a_prompt_waits_for_the_answer_too),
		SYNC_TEST(test_a_method_of_the_brokers_asks_too_but_for_a_rollback),
		SYNC_TEST(test_a_cancel_is_a_no),
		SYNC_TEST(test_permission_timeout_is_a_no),
		SYNC_TEST(test_an_editor_that_leaves_says_no),
		SYNC_TEST(test_an_agent_that_dies_says_no),
		SYNC_TEST(test_a_relay_that_is_destroyed_asks_no_more),
		SYNC_TEST(test_another_session_waits_and_its_prompt_can_be_cancelled),
		SYNC_TEST(test_approve_all_follows_them),
		SYNC_TEST(test_deny_all_gives_them_back),
		SYNC_TEST(test_a_rule_about_writing_decides),
		SYNC_TEST(test_what_is_gone_here_is_asked_about_whatever_policy_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
