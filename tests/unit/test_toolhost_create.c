/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include <fcntl.h>

/* Runs a command to its end; returns its output, valid until the next call. */
static const char *output_of(const char *params)
{
	char id[32];
	int create = ask_text("terminal/create", params);
	snprintf(id, sizeof(id), "%s", member_of(create, "terminalId"));
	result_of(ask("terminal/wait_for_exit", "\"terminalId\":\"%s\"", id));
	int output = ask("terminal/output", "\"terminalId\":\"%s\"", id);
	result_of(ask("terminal/release", "\"terminalId\":\"%s\"", id));
	return member_of(output, "output");
}

/* ---- command and args ---- */

static void test_a_command_without_args_is_a_shell_line(void **state)
{
	assert_string_equal(
		output_of("\"command\":\"echo a b | tr a-z A-Z; echo $0\""), "A B\n/bin/sh\n");
	assert_string_equal(output_of("\"command\":\"echo a\",\"args\":[]"), "a\n");
	assert_string_equal(output_of("\"command\":\"echo a\",\"args\":null"), "a\n");
}

static void test_a_command_with_args_is_run_as_it_is(void **state)
{
	assert_string_equal(output_of("\"command\":\"printf\",\"args\":[\"%s|\",\"a "
				      "b\",\"$HOME\",\"\",\"\\u20ac\"]"),
		"a b|$HOME||\xe2\x82\xac|");
}

static void test_a_command_that_does_not_exist_is_named(void **state)
{
	expect_failure(ask("terminal/create", "\"command\":\"no-such-command\",\"args\":[\"a\"]"),
		"COMMAND_NOT_FOUND", "\"no-such-command\": no such command in PATH /usr/bin:/bin");
	put_text_file("plain", "x");
	expect_failure(ask("terminal/create", "\"command\":\"%s/plain\",\"args\":[\"a\"]",
			       fixture.roots[0]),
		"COMMAND_NOT_FOUND", "may not be executed");
	assert_non_null(strstr(output_of("\"command\":\"no-such-command\""), "not found"));
}

static void test_bad_params_are_refused(void **state)
{
	static const char *const bad[] = {"", "\"command\":7",
		"\"command\":\"a\\u0000b\",\"args\":{}", "\"command\":\"echo\",\"args\":\"a\"",
		"\"command\":\"echo\",\"args\":[\"a\",1]",
		"\"command\":\"echo\",\"args\":[\"a\\u0000\"]", "\"command\":\"echo\",\"env\":{}",
		"\"command\":\"echo\",\"env\":[1]",
		"\"command\":\"echo\",\"env\":[{\"name\":\"A\"}]",
		"\"command\":\"echo\",\"env\":[{\"name\":\"\",\"value\":\"\"}]",
		"\"command\":\"echo\",\"env\":[{\"name\":\"A=B\",\"value\":\"\"}]",
		"\"command\":\"echo\",\"env\":[{\"name\":\"A\",\"value\":\"\\u0000\"}]",
		"\"command\":\"echo\",\"outputByteLimit\":\"7\"",
		"\"command\":\"echo\",\"outputByteLimit\":-7", "\"command\":\"echo\",\"cwd\":7"};
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		expect_failure(ask_text("terminal/create", bad[i]), "INVALID_PARAMS", "\"");
	}
	expect_failure(ask_text("terminal/create", "\"command\":\"a\\u0000b\""),
		"SECURITY_VIOLATION", "NUL");
	expect_failure(ask_text("terminal/create", "\"command\":\"a\",\"cwd\":\"/a\\u0000b\""),
		"SECURITY_VIOLATION", "NUL");
}

/* ---- environment and stdin ---- */

static void test_the_environment_is_the_sandboxes_and_the_agents(void **state)
{
	assert_string_equal(
		output_of("\"command\":\"echo $HOME,$LANG,$A,$B\",\"env\":["
			  "{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"LANG\",\"value\":"
			  "\"de\"},{\"name\":\"B\",\"value\":\"x\\ny=z\"}]"),
		"/,de,1,x y=z\n");
}

static void test_nothing_waits_for_a_pager(void **state)
{
	assert_string_equal(
		output_of("\"command\":\"echo \\\"${PAGER-unset}\\\",$GIT_PAGER\""), ",cat\n");
	assert_string_equal(output_of("\"command\":\"echo $PAGER,$GIT_PAGER\",\"env\":[{\"name\":"
				      "\"PAGER\",\"value\":\"more\"}]"),
		"more,cat\n");
}

static void test_nobody_types(void **state)
{
	assert_string_equal(output_of("\"command\":\"readlink /proc/self/fd/0; cat; read x || echo "
				      "end\""),
		"/dev/null\nend\n");
}

/* ---- cwd ---- */

static void expect_cwd(const char *params, const char *name)
{
	char expected[300];
	const char *output = output_of(params);
	snprintf(expected, sizeof(expected), "%s%s\n", fixture.roots[0], name);
	assert_string_equal(output, expected);
}

static void test_it_starts_in_the_sessions_directory_or_below(void **state)
{
	char params[400];
	assert_int_equal(mkdir(local_path("sub"), 0755), 0);
	assert_int_equal(symlink("sub", local_path("link")), 0);
	expect_cwd("\"command\":\"pwd -P\"", "");
	expect_cwd("\"command\":\"pwd -P\",\"cwd\":null", "");
	static const char *const names[] = {"sub", "sub/", "link", ".//sub/../sub"};
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		snprintf(params, sizeof(params), "\"command\":\"pwd -P\",\"cwd\":\"%s/%s\"",
			fixture.roots[0], names[i]);
		expect_cwd(params, "/sub");
	}
}

static void test_another_directory_is_refused(void **state)
{
	static const char *const bad[] = {"/", "/etc", "sub", ""};
	char path[300];
	for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
		expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", bad[i]),
			"SECURITY_VIOLATION", "refused");
	}
	assert_int_equal(symlink("/etc", local_path("out")), 0);
	snprintf(path, sizeof(path), "%s/out", fixture.roots[0]);
	expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", path),
		"SECURITY_VIOLATION", "refused");
	snprintf(path, sizeof(path), "%s/none", fixture.roots[0]);
	expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", path),
		"DIRECTORY_NOT_FOUND", "/none: No such file or directory");
	char file[320];
	snprintf(file, sizeof(file), "%s/file", fixture.roots[0]);
	int fd = open(local_path("file"), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", file),
		"DIRECTORY_NOT_FOUND", "Not a directory");
	expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s/x\"", file),
		"DIRECTORY_NOT_FOUND", "Not a directory");
}

static void test_the_directory_of_another_session_is_refused(void **state)
{
	char other[160];
	snprintf(other, sizeof(other), "%s/root2", fixture.folder);
	assert_int_equal(mkdir(other, 0755), 0);
	const char *runtime = fixture_add_root(other);
	expect_failure(ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", runtime),
		"SECURITY_VIOLATION", "session's roots");
	fixture.roots[1] = runtime;
	fixture.roots[2] = NULL;
	char params[300];
	snprintf(params, sizeof(params), "\"command\":\"pwd -P\",\"cwd\":\"%s\"", runtime);
	assert_non_null(strstr(output_of(params), runtime));
}

/* The command reaches the sandbox in the first message about it. */
static void test_the_sessions_own_directory_is_not_resolved_first(void **state)
{
	struct fake_behaviour *behaviour = fake_behaviour(fixture.provider);
	char other[160];
	snprintf(other, sizeof(other), "%s/root2", fixture.folder);
	assert_int_equal(mkdir(other, 0755), 0);
	fixture.roots[1] = fixture_add_root(other);
	fixture.roots[2] = NULL;
	behaviour->failures[FAKE_RESOLVE] = 1;
	for (size_t i = 0; i < 2; i++) {
		char params[400];
		snprintf(params, sizeof(params), "\"command\":\"echo $PWD\",\"cwd\":\"%s\"",
			fixture.roots[i]);
		assert_non_null(output_of(params));
	}
	expect_failure(
		ask("terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[1]),
		"SANDBOX_UNAVAILABLE", "");
}

/* ---- trouble ---- */

static void test_what_the_sandbox_refuses_is_told(void **state)
{
	struct fake_behaviour *behaviour = fake_behaviour(fixture.provider);
	behaviour->failures[FAKE_EXEC] = 1;
	expect_failure(ask("terminal/create", "\"command\":\"true\""), "SANDBOX_UNAVAILABLE", "");
	behaviour->failures[FAKE_START] = 1;
	expect_failure(ask("terminal/create", "\"command\":\"true\""), "SANDBOX_UNAVAILABLE", "");
	behaviour->failures[FAKE_RESOLVE] = 1;
	expect_failure(
		ask("terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[0]),
		"SANDBOX_UNAVAILABLE", "");
	assert_string_equal(output_of("\"command\":\"echo fine\""), "fine\n");
}

static void test_the_end_of_a_session_answers_what_is_being_created(void **state)
{
	int resolving =
		ask("terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[0]);
	int starting = ask("terminal/create", "\"command\":\"true\"");
	toolhost_end_session(fixture.toolhost, "s1");
	expect_failure(resolving, "EDITOR_GONE", "session has ended");
	expect_failure(starting, "EDITOR_GONE", "session has ended");
	ask("terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[0]);
	ask("terminal/create", "\"command\":\"true\""); // the ToolHost ends during these
}

static void test_a_directory_that_does_not_answer_is_given_up(void **state)
{
	fixture.limits.file_timeout_ms = 30;
	fixture.limits.max_terminals = 1;
	fixture_open();
	fake_behaviour(fixture.provider)->delay_ms = 60000;
	int create =
		ask("terminal/create", "\"command\":\"true\",\"cwd\":\"%s/sub\"", fixture.roots[0]);
	expect_failure(create, "TIMEOUT_EXCEEDED", "file-timeout (30 ms)");
	fake_behaviour(fixture.provider)->delay_ms = 0;
	assert_string_equal(output_of("\"command\":\"echo next\""), "next\n"); // its place is free
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_a_command_without_args_is_a_shell_line),
		ON_LOCAL(test_a_command_with_args_is_run_as_it_is),
		ON_LOCAL(test_a_command_that_does_not_exist_is_named),
		ON_LOCAL(test_bad_params_are_refused),
		ON_LOCAL(test_the_environment_is_the_sandboxes_and_the_agents),
		ON_LOCAL(test_nothing_waits_for_a_pager),
		ON_LOCAL(test_nobody_types),
		ON_LOCAL(test_it_starts_in_the_sessions_directory_or_below),
		ON_LOCAL(test_another_directory_is_refused),
		ON_LOCAL(test_the_directory_of_another_session_is_refused),
		ON_LOCAL(test_the_end_of_a_session_answers_what_is_being_created),
		ON_FAKE(test_a_command_that_does_not_exist_is_named),
		ON_FAKE(test_it_starts_in_the_sessions_directory_or_below),
		ON_FAKE(test_another_directory_is_refused),
		ON_FAKE(test_the_directory_of_another_session_is_refused),
		ON_FAKE(test_the_sessions_own_directory_is_not_resolved_first),
		ON_FAKE(test_what_the_sandbox_refuses_is_told),
		ON_FAKE(test_a_directory_that_does_not_answer_is_given_up),
		ON_FAKE(test_the_end_of_a_session_answers_what_is_being_created),
	};
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
