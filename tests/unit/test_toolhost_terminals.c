/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "base/fd.h"
#include "base/tree.h"

static const char exited_well[] = "{\"exitCode\":0,\"signal\":null}";
static const char was_killed[] = "{\"exitCode\":null,\"signal\":\"SIGKILL\"}";

static const char *create(const char *command)
{
	return terminal_open(command);
}

static int ask_of(const char *method, const char *id)
{
	return terminal_ask(method, id);
}

static const char *wait_for_output(const char *id, const char *words)
{
	return terminal_wait_output(id, words);
}

/* A zombie counts as ended: process 1 of a container may never reap the children that it gets. */
static bool is_gone(long pid)
{
	struct tree tree = {0};
	struct error err;
	assert_true(tree_scan(&tree, &err));
	const struct tree_process *process = tree_find(&tree, (pid_t)pid);
	bool is_none = !process || process->state == 'Z';
	tree_finish(&tree);
	return is_none;
}

static void expect_gone(long pid)
{
	long long deadline_ms = clock_now_ms() + FIXTURE_DEADLINE_MS;
	while (!is_gone(pid) && clock_now_ms() < deadline_ms) {
		fixture_run_for(5);
	}
	assert_true(is_gone(pid));
}

/* ---- the five methods ---- */

static void test_a_command_runs_to_its_end(void **state)
{
	expect_result(ask("terminal/create", "\"command\":\"echo hello\""),
		"{\"terminalId\":\"term-1\"}");
	expect_result(ask_of("wait_for_exit", "term-1"), exited_well);
	expect_result(ask_of("output", "term-1"),
		"{\"output\":\"hello\\n\",\"truncated\":false,"
		"\"exitStatus\":{\"exitCode\":0,\"signal\":null}}");
	expect_result(ask_of("release", "term-1"), "{}");
	expect_result(
		ask("terminal/create", "\"command\":\"true\""), "{\"terminalId\":\"term-2\"}");
}

static void test_output_is_there_while_it_runs(void **state)
{
	const char *id = create("echo begun; sleep 1000");
	assert_string_equal(wait_for_output(id, "begun"), "begun\n");
	expect_result(ask_of("output", id), "{\"output\":\"begun\\n\",\"truncated\":false}");
}

static void test_both_outputs_are_one_as_they_were_written(void **state)
{
	const char *id = create("for i in 1 2 3; do echo o$i; echo e$i >&2; done");
	expect_result(ask_of("wait_for_exit", id), exited_well);
	assert_string_equal(member_of(ask_of("output", id), "output"), "o1\ne1\no2\ne2\no3\ne3\n");
}

static void test_exit_code_and_signal_are_apart(void **state)
{
	expect_result(
		ask_of("wait_for_exit", create("exit 3")), "{\"exitCode\":3,\"signal\":null}");
	expect_result(ask_of("wait_for_exit", create("kill -TERM $$")),
		"{\"exitCode\":null,\"signal\":\"SIGTERM\"}");
	const char *id = create("kill -SEGV $$");
	expect_result(ask_of("wait_for_exit", id), "{\"exitCode\":null,\"signal\":\"SIGSEGV\"}");
	assert_string_equal(member_of(ask_of("output", id), "exitStatus.signal"), "SIGSEGV");
}

static void test_several_may_wait_for_the_exit(void **state)
{
	const char *id = create("while ! [ -e go ]; do sleep 0.01; done; exit 7");
	int waits[10];
	for (int i = 0; i < 10; i++) {
		waits[i] = ask_of("wait_for_exit", id);
	}
	fixture_run_for(20);
	assert_int_equal(fixture.answer_count, 1);
	put_text_file("go", "");
	for (int i = 0; i < 10; i++) {
		expect_result(waits[i], "{\"exitCode\":7,\"signal\":null}");
	}
	expect_result(ask_of("wait_for_exit", id), "{\"exitCode\":7,\"signal\":null}");
}

static void test_a_killed_terminal_can_still_be_read(void **state)
{
	const char *id = create("echo before; sleep 1000; echo after");
	wait_for_output(id, "before");
	int wait = ask_of("wait_for_exit", id);
	expect_result(ask_of("kill", id), "{}");
	expect_result(wait, was_killed);
	expect_result(ask_of("output", id),
		"{\"output\":\"before\\n\",\"truncated\":false,"
		"\"exitStatus\":{\"exitCode\":null,\"signal\":\"SIGKILL\"}}");
	expect_result(ask_of("kill", id), "{}");
	expect_result(ask_of("wait_for_exit", id), was_killed);
	expect_result(ask_of("release", id), "{}");
}

static void test_release_while_somebody_waits_answers_both(void **state)
{
	const char *id = create("sleep 1000");
	int first = ask_of("wait_for_exit", id);
	int second = ask_of("wait_for_exit", id);
	expect_result(ask_of("release", id), "{}");
	expect_result(first, was_killed);
	expect_result(second, was_killed);
}

static void test_unknown_and_released_terminals_are_refused(void **state)
{
	static const char *const methods[] = {"release", "output", "wait_for_exit", "kill"};
	static const char *const never[] = {"term-2", "term-0", "term-01", "term-", "", "x"};
	const char *id = create("sleep 1000");
	int release = ask_of("release", id); // unknown from the call on, not from the answer on
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (i > 0) {
			expect_failure(
				ask_of(methods[i], id), "INVALID_PARAMS", "term-1 was released");
		}
		for (size_t j = 0; j < ARRAY_LENGTH(never); j++) {
			expect_failure(ask_of(methods[i], never[j]), "INVALID_PARAMS", "not known");
		}
	}
	expect_failure(ask("terminal/output", "\"terminalId\":1"), "INVALID_PARAMS", "terminalId");
	expect_result(release, "{}");
}

/* An agent may wait for the end in one place and kill the command in another. */
static void test_what_was_released_can_be_released_again(void **state)
{
	const char *id = create("sleep 1000");
	int wait = ask_of("wait_for_exit", id);
	int releases[] = {ask_of("release", id), ask_of("release", id)};
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		expect_result(releases[i], "{}");
	}
	expect_result(wait, was_killed);
	for (int i = 0; i < 2; i++) { // even if none of its processes is left
		expect_result(ask_of("release", id), "{}");
		fixture_run_for(300);
	}
	expect_failure(ask_of("output", id), "INVALID_PARAMS", "term-1 was released");
}

static void test_a_terminal_is_its_sessions_own(void **state)
{
	static const char *const methods[] = {"output", "wait_for_exit", "kill", "release"};
	const char *id = create("sleep 1000");
	fixture.session = "s2";
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		expect_failure(ask_of(methods[i], id), "INVALID_PARAMS", "another session");
	}
	fixture.session = "s1";
	expect_result(ask_of("output", id), "{\"output\":\"\",\"truncated\":false}");
}

/* ---- limits ---- */

static void test_a_hundred_terminals_run_at_once(void **state)
{
	enum { COUNT = 100 };
	int calls[COUNT];
	int waits[COUNT];
	char id[32];
	for (int i = 0; i < COUNT; i++) {
		calls[i] = ask("terminal/create",
			"\"command\":\"while ! [ -e go ]; do sleep 0.1; done; echo %d\"", i);
	}
	for (int i = 0; i < COUNT; i++) {
		snprintf(id, sizeof(id), "%s", member_of(calls[i], "terminalId"));
		waits[i] = ask_of("wait_for_exit", id);
	}
	expect_failure(ask("terminal/create", "\"command\":\"true\""), "RESOURCE_LIMIT_EXCEEDED",
		"100 terminals | max-terminals");
	put_text_file("go", "");
	for (int i = 0; i < COUNT; i++) {
		char expected[16];
		expect_result(waits[i], exited_well);
		snprintf(id, sizeof(id), "%s", member_of(calls[i], "terminalId"));
		snprintf(expected, sizeof(expected), "%d\n", i);
		assert_string_equal(member_of(ask_of("output", id), "output"), expected);
	}
	expect_result(ask_of("release", id), "{}");
	create("true");
}

static void test_the_end_of_the_output_is_kept_at_a_character(void **state)
{
	int call = ask("terminal/create",
		"\"command\":\"printf 'x\\u20ac\\u20ac\\u20ac'\",\"outputByteLimit\":5");
	char id[32];
	snprintf(id, sizeof(id), "%s", member_of(call, "terminalId"));
	expect_result(ask_of("wait_for_exit", id), exited_well);
	expect_result(ask_of("output", id), "{\"output\":\"\xe2\x82\xac\",\"truncated\":true,"
					    "\"exitStatus\":{\"exitCode\":0,\"signal\":null}}");
}

static void test_the_profiles_limit_holds_whatever_is_asked_for(void **state)
{
	static const char *const asked[] = {"", ",\"outputByteLimit\":1000",
		",\"outputByteLimit\":9000000000000000000", ",\"outputByteLimit\":null"};
	fixture.limits.output_limit = 10;
	fixture_open();
	char id[32];
	for (size_t i = 0; i < ARRAY_LENGTH(asked); i++) {
		int call = ask("terminal/create", "\"command\":\"echo 0123456789abc\"%s", asked[i]);
		snprintf(id, sizeof(id), "%s", member_of(call, "terminalId"));
		expect_result(ask_of("wait_for_exit", id), exited_well);
		assert_string_equal(member_of(ask_of("output", id), "output"), "456789abc\n");
		assert_string_equal(member_of(ask_of("output", id), "truncated"), "true");
	}
	int call = ask("terminal/create", "\"command\":\"echo 01\",\"outputByteLimit\":0");
	snprintf(id, sizeof(id), "%s", member_of(call, "terminalId"));
	expect_result(ask_of("wait_for_exit", id), exited_well);
	assert_string_equal(member_of(ask_of("output", id), "output"), "");
	assert_string_equal(member_of(ask_of("output", id), "truncated"), "true");
}

static void test_bytes_that_are_no_text_are_replaced(void **state)
{
	const char *id = create("printf '\\\\377a\\\\200\\\\303'");
	expect_result(ask_of("wait_for_exit", id), exited_well);
	assert_string_equal(member_of(ask_of("output", id), "output"), "\xef\xbf\xbd"
								       "a\xef\xbf\xbd\xef\xbf\xbd");
}

/* A busy machine gets the time that it needs to reach the first word, or the end. */
enum { TIMEOUT_MS = 100, TIMEOUT_MAX_MS = 60000 };

static void test_a_command_that_takes_too_long_is_killed_and_that_is_said(void **state)
{
	char setting[64];
	const char *id;
	int timeout_ms = TIMEOUT_MS;
	for (;; timeout_ms *= 4) {
		assert_true(timeout_ms < TIMEOUT_MAX_MS);
		fixture.limits.terminal_timeout_ms = timeout_ms;
		fixture_open();
		id = create("echo begun; sleep 1000");
		snprintf(setting, sizeof(setting), "terminal-timeout (%d ms)", timeout_ms);
		expect_failure(ask_of("wait_for_exit", id), "TIMEOUT_EXCEEDED", setting);
		if (*member_of(ask_of("output", id), "output")) {
			break;
		}
	}
	expect_failure(ask_of("wait_for_exit", id), "TIMEOUT_EXCEEDED", "terminal-timeout");
	expect_result(ask_of("output", id),
		"{\"output\":\"begun\\n\",\"truncated\":false,"
		"\"exitStatus\":{\"exitCode\":null,\"signal\":\"SIGKILL\"}}");
}

static void test_a_command_that_ended_in_time_did_so_for_good(void **state)
{
	const char *id;
	int timeout_ms = TIMEOUT_MS;
	for (;; timeout_ms *= 4) {
		assert_true(timeout_ms < TIMEOUT_MAX_MS);
		fixture.limits.terminal_timeout_ms = timeout_ms;
		fixture_open();
		id = create("true");
		const struct answer *answer = wait_for(ask_of("wait_for_exit", id));
		if (!answer->is_failure) {
			break;
		}
		assert_string_equal(answer->code, "TIMEOUT_EXCEEDED");
	}
	fixture_run_for(timeout_ms + TIMEOUT_MS);
	expect_result(ask_of("wait_for_exit", id), exited_well);
}

/* ---- processes ---- */

static void test_kill_and_release_end_the_process_group(void **state)
{
	static const char *const methods[] = {"kill", "release"};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		const char *id = create("trap '' TERM; sleep 1000 & echo $!; sleep 1000");
		long child = strtol(wait_for_output(id, "\n"), NULL, 10);
		assert_int_equal(kill((pid_t)child, 0), 0);
		expect_result(ask_of(methods[i], id), "{}");
		expect_gone(child);
	}
}

static void test_the_exit_is_told_though_a_child_holds_the_output(void **state)
{
	const char *id = create("(while ! [ -e go ]; do sleep 0.01; done; echo later) & echo now");
	expect_result(ask_of("wait_for_exit", id), exited_well);
	expect_result(ask_of("output", id), "{\"output\":\"now\\n\",\"truncated\":false,"
					    "\"exitStatus\":{\"exitCode\":0,\"signal\":null}}");
	put_text_file("go", "");
	wait_for_output(id, "later");
	expect_result(ask_of("release", id), "{}");
}

static void test_a_command_may_run_in_the_background_until_the_session_ends(void **state)
{
	const char *id = create("sh -c 'while :; do echo noise; sleep 0.01; done' & echo $!");
	long child = strtol(wait_for_output(id, "\n"), NULL, 10);
	expect_result(ask_of("wait_for_exit", id), exited_well);
	expect_result(ask_of("release", id), "{}");
	fixture_run_for(300);
	assert_int_equal(kill((pid_t)child, 0), 0); // nobody stopped reading its output
	fixture.session = "s2";
	toolhost_end_session(fixture.toolhost, "s2");
	assert_int_equal(kill((pid_t)child, 0), 0);
	toolhost_end_session(fixture.toolhost, "s1");
	expect_gone(child);
}

static void test_released_terminals_with_background_processes_are_bounded(void **state)
{
	fixture.limits.max_terminals = 2;
	fixture_open();
	for (int i = 0; i < 4; i++) {
		const char *id = create("sleep 1000 > /dev/null 2>&1 & echo");
		expect_result(ask_of("wait_for_exit", id), exited_well);
		expect_result(ask_of("release", id), "{}");
	}
	expect_failure(ask("terminal/create", "\"command\":\"true\""), "RESOURCE_LIMIT_EXCEEDED",
		"4 released terminals | background");
}

static void test_it_is_busy_until_the_last_answer(void **state)
{
	const char *id = create("read line");
	assert_false(toolhost_is_busy(fixture.toolhost));
	int wait = ask_of("wait_for_exit", id);
	assert_true(toolhost_is_busy(fixture.toolhost));
	wait_for(wait);
	assert_false(toolhost_is_busy(fixture.toolhost));
	int output = ask_of("output", id); // known at once, and answered in the next turn
	assert_true(toolhost_is_busy(fixture.toolhost));
	wait_for(output);
	assert_false(toolhost_is_busy(fixture.toolhost));
}

static void test_the_end_of_a_session_ends_its_terminals(void **state)
{
	const char *id = create("echo $$; sleep 1000");
	long process = strtol(wait_for_output(id, "\n"), NULL, 10);
	int wait = ask_of("wait_for_exit", id);
	fixture.session = "s2";
	const char *other = create("sleep 1000");
	toolhost_end_session(fixture.toolhost, "s1");
	expect_failure(wait, "EDITOR_GONE", "session has ended");
	expect_gone(process);
	expect_result(ask_of("output", other), "{\"output\":\"\",\"truncated\":false}");
}

static void test_a_toolhost_that_goes_takes_its_processes_along(void **state)
{
	const char *id = create("echo $$; sleep 1000");
	long process = strtol(wait_for_output(id, "\n"), NULL, 10);
	ask_of("wait_for_exit", id);
	ask_of("kill", id);
	int answers = fixture.answer_count;
	toolhost_destroy(fixture.toolhost);
	fixture.toolhost = NULL;
	expect_gone(process);
	assert_int_equal(fixture.answer_count, answers);
}

static void test_a_lost_link_is_told_to_who_waits(void **state)
{
	const char *id = create("echo hello; sleep 1000");
	wait_for_output(id, "hello");
	int wait = ask_of("wait_for_exit", id);
	fixture.may_be_lost = true;
	fake_lose(fixture.provider, "the cable was cut");
	expect_failure(wait, "SANDBOX_UNAVAILABLE", "link | sandbox | lost");
	expect_result(ask_of("output", id), "{\"output\":\"hello\\n\",\"truncated\":false,"
					    "\"exitStatus\":{\"exitCode\":null,\"signal\":null}}");
	expect_result(ask_of("release", id), "{}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_a_command_runs_to_its_end),
		ON_LOCAL(test_output_is_there_while_it_runs),
		ON_LOCAL(test_both_outputs_are_one_as_they_were_written),
		ON_LOCAL(test_exit_code_and_signal_are_apart),
		ON_LOCAL(test_several_may_wait_for_the_exit),
		ON_LOCAL(test_a_killed_terminal_can_still_be_read),
		ON_LOCAL(test_release_while_somebody_waits_answers_both),
		ON_LOCAL(test_unknown_and_released_terminals_are_refused),
		ON_LOCAL(test_what_was_released_can_be_released_again),
		ON_LOCAL(test_a_terminal_is_its_sessions_own),
		ON_LOCAL(test_a_hundred_terminals_run_at_once),
		ON_LOCAL(test_the_end_of_the_output_is_kept_at_a_character),
		ON_LOCAL(test_the_profiles_limit_holds_whatever_is_asked_for),
		ON_LOCAL(test_bytes_that_are_no_text_are_replaced),
		ON_LOCAL(test_a_command_that_takes_too_long_is_killed_and_that_is_said),
		ON_LOCAL(test_a_command_that_ended_in_time_did_so_for_good),
		ON_LOCAL(test_kill_and_release_end_the_process_group),
		ON_LOCAL(test_the_exit_is_told_though_a_child_holds_the_output),
		ON_LOCAL(test_a_command_may_run_in_the_background_until_the_session_ends),
		ON_LOCAL(test_released_terminals_with_background_processes_are_bounded),
		ON_LOCAL(test_it_is_busy_until_the_last_answer),
		ON_LOCAL(test_the_end_of_a_session_ends_its_terminals),
		ON_LOCAL(test_a_toolhost_that_goes_takes_its_processes_along),
		ON_FAKE(test_a_command_runs_to_its_end),
		ON_FAKE(test_both_outputs_are_one_as_they_were_written),
		ON_FAKE(test_several_may_wait_for_the_exit),
		ON_FAKE(test_a_killed_terminal_can_still_be_read),
		ON_FAKE(test_release_while_somebody_waits_answers_both),
		ON_FAKE(test_kill_and_release_end_the_process_group),
		ON_FAKE(test_the_end_of_a_session_ends_its_terminals),
		ON_FAKE(test_a_lost_link_is_told_to_who_waits),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
