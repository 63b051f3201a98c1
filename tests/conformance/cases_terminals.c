/* SPDX-License-Identifier: MIT */
#include "tests/support/toolhost/fixture.h"

#include "tests/conformance/world.h"

/* terminal/… of the ToolHost, on every sandbox. */
static const char exited_well[] = "{\"exitCode\":0,\"signal\":null}";
static const char was_killed[] = "{\"exitCode\":null,\"signal\":\"SIGKILL\"}";
static const char killed_status[] = "\"exitStatus\":{\"exitCode\":null,\"signal\":\"SIGKILL\"}";

#define UNTIL(name) "while ! [ -e " name " ]; do sleep 0.02; done; "

/* Runs a command to its end; returns its output, valid until the next call. */
static const char *output_of(const char *params)
{
	char id[32];
	int create = ask_text("terminal/create", params);
	snprintf(id, sizeof(id), "%s", member_of(create, "terminalId"));
	result_of(terminal_ask("wait_for_exit", id));
	int output = terminal_ask("output", id);
	result_of(terminal_ask("release", id));
	return member_of(output, "output");
}

static void expect_output(const char *params, const char *expected)
{
	assert_string_equal(output_of(params), expected);
}

static void expect_exit(const char *command, const char *expected)
{
	expect_result(terminal_ask("wait_for_exit", terminal_open(command)), expected);
}

static long pid_in(const char *output)
{
	long pid = strtol(output, NULL, 10);
	assert_true(pid > 1);
	return pid;
}

/* ---- what the caller gets of a command ---- */

static void output_is_interleaved_as_written(struct world *world)
{
	expect_output("\"command\":\"for i in 1 2 3; do echo o$i; echo e$i >&2; done\"",
		"o1\ne1\no2\ne2\no3\ne3\n");
}

static void code_and_signal_are_apart(struct world *world)
{
	expect_exit("true", exited_well);
	expect_exit("exit 3", "{\"exitCode\":3,\"signal\":null}");
	expect_exit("kill -TERM $$", "{\"exitCode\":null,\"signal\":\"SIGTERM\"}");
	expect_exit("kill -SEGV $$", "{\"exitCode\":null,\"signal\":\"SIGSEGV\"}");
}

static void the_tail_is_kept_at_a_character(struct world *world)
{
	static const struct {
		const char *command;
		int limit;
		const char *result;
	} cases[] = {
		{"printf 'x\\u20ac\\u20ac\\u20ac'", 5,
			"\"output\":\"\xe2\x82\xac\",\"truncated\":true"},
		{"printf 'x\\u20ac\\u20ac\\u20ac'", 6,
			"\"output\":\"\xe2\x82\xac\xe2\x82\xac\",\"truncated\":true"},
		{"printf 'x\\u20ac'", 4, "\"output\":\"x\xe2\x82\xac\",\"truncated\":false"},
		{"printf abc", 0, "\"output\":\"\",\"truncated\":true"},
		{"true", 0, "\"output\":\"\",\"truncated\":false"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		char id[32];
		int call = ask("terminal/create", "\"command\":\"%s\",\"outputByteLimit\":%d",
			cases[i].command, cases[i].limit);
		snprintf(id, sizeof(id), "%s", member_of(call, "terminalId"));
		expect_result(terminal_ask("wait_for_exit", id), exited_well);
		assert_non_null(strstr(result_of(terminal_ask("output", id)), cases[i].result));
	}
}

static void the_end_of_much_output_is_kept(struct world *world)
{
	fixture.limits.output_limit = 65536;
	fixture_open();
	const char *id = terminal_open("head -c 8388608 /dev/zero | tr '\\\\0' x; echo end");
	expect_result(terminal_ask("wait_for_exit", id), exited_well);
	const char *output = member_of(terminal_ask("output", id), "output");
	assert_int_equal(strlen(output), 65536);
	assert_string_equal(output + 65536 - 5, "xend\n");
	assert_string_equal(member_of(terminal_ask("output", id), "truncated"), "true");
}

/* ---- what a command gets ---- */

static void nobody_types_and_nothing_waits_for_a_pager(struct world *world)
{
	expect_output("\"command\":\"cat; read x || echo end\"", "end\n");
	expect_output("\"command\":\"readlink /proc/self/fd/0\"", "/dev/null\n");
	expect_output("\"command\":\"echo \\\"${PAGER-unset}\\\",$GIT_PAGER\"", ",cat\n");
	expect_output("\"command\":\"echo $PAGER,$A\",\"env\":[{\"name\":\"PAGER\",\"value\":"
		      "\"more\"},{\"name\":\"A\",\"value\":\"x\\n\\u00e4=z\"}]",
		"more,x \xc3\xa4=z\n");
}

static void without_args_it_is_a_shell_line(struct world *world)
{
	expect_output("\"command\":\"echo a b | tr a-z A-Z\"", "A B\n");
	expect_output("\"command\":\"echo a\",\"args\":[]", "a\n");
	expect_output(
		"\"command\":\"printf\",\"args\":[\"%s|\",\"a b\",\"$HOME\",\"\",\"\\u20ac\"]",
		"a b|$HOME||\xe2\x82\xac|");
	expect_failure(ask("terminal/create", "\"command\":\"no-such-command\",\"args\":[\"a\"]"),
		"COMMAND_NOT_FOUND", "no-such-command");
}

static void it_starts_inside_the_roots_alone(struct world *world)
{
	static const char *const inside[] = {"sub", "sub/", "link", ".//sub/../sub"};
	static const char *const outside[] = {"out", "..", "../..", "sub/../../x"};
	char params[PATH_MAX + 100];
	char expected[PATH_MAX + 8];
	world_shell(world, "mkdir sub; ln -s sub link; ln -s /etc out");
	snprintf(expected, sizeof(expected), "%.4000s/sub\n", world->root);
	for (size_t i = 0; i < ARRAY_LENGTH(inside); i++) {
		snprintf(params, sizeof(params), "\"command\":\"pwd -P\",\"cwd\":\"%.4000s\"",
			world_path(world, inside[i]));
		expect_output(params, expected);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(outside); i++) {
		const char *path = world_path(world, outside[i]);
		int call = ask("terminal/create", "\"command\":\"pwd\",\"cwd\":\"%s\"", path);
		expect_failure(call, "SECURITY_VIOLATION", path);
	}
	snprintf(expected, sizeof(expected), "%.4000s\n", world->root);
	expect_output("\"command\":\"pwd -P\"", expected);
}

/* ---- waiting, killing, releasing ---- */

static void several_wait_for_the_exit(struct world *world)
{
	int waits[10];
	const char *id = terminal_open(UNTIL("go") "exit 7");
	for (size_t i = 0; i < ARRAY_LENGTH(waits); i++) {
		waits[i] = terminal_ask("wait_for_exit", id);
	}
	world_shell(world, "touch go");
	for (size_t i = 0; i < ARRAY_LENGTH(waits); i++) {
		expect_result(waits[i], "{\"exitCode\":7,\"signal\":null}");
	}
}

static void after_kill_there_is_output(struct world *world)
{
	const char *id = terminal_open("echo before; sleep 1000; echo after");
	terminal_wait_output(id, "before");
	int wait = terminal_ask("wait_for_exit", id);
	expect_result(terminal_ask("kill", id), "{}");
	expect_result(wait, was_killed);
	const char *output = result_of(terminal_ask("output", id));
	assert_non_null(strstr(output, "{\"output\":\"before\\n\",\"truncated\":false,"));
	assert_non_null(strstr(output, killed_status));
	expect_result(terminal_ask("kill", id), "{}");
	expect_result(terminal_ask("release", id), "{}");
}

static void release_answers_who_waits(struct world *world)
{
	const char *id = terminal_open("sleep 1000");
	int first = terminal_ask("wait_for_exit", id);
	int second = terminal_ask("wait_for_exit", id);
	expect_result(terminal_ask("release", id), "{}");
	expect_result(first, was_killed);
	expect_result(second, was_killed);
}

static void unknown_and_released_ids_are_refused(struct world *world)
{
	static const char *const methods[] = {"output", "wait_for_exit", "kill"};
	const char *id = terminal_open("sleep 1000");
	expect_result(terminal_ask("release", id), "{}");
	expect_result(terminal_ask("release", id), "{}"); // the same as once
	expect_failure(terminal_ask("release", "term-9"), "INVALID_PARAMS", "not known");
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		expect_failure(terminal_ask(methods[i], id), "INVALID_PARAMS", "was released");
		expect_failure(terminal_ask(methods[i], "term-9"), "INVALID_PARAMS", "not known");
		expect_failure(terminal_ask(methods[i], ""), "INVALID_PARAMS", "not known");
	}
}

static void kill_and_release_end_the_group(struct world *world)
{
	static const char *const methods[] = {"kill", "release"};
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		const char *id = terminal_open("trap '' TERM; sleep 1000 & echo $!; sleep 1000");
		long child = pid_in(terminal_wait_output(id, "\n"));
		assert_true(world_is_alive(world, child));
		expect_result(terminal_ask(methods[i], id), "{}");
		world_expect_gone(world, child);
	}
}

static void the_tree_ends_with_the_session(struct world *world)
{
	const char *id = terminal_open("setsid sh -c 'echo $$; exec sleep 1000' & wait");
	long daemon = pid_in(terminal_wait_output(id, "\n"));
	int wait = terminal_ask("wait_for_exit", id);
	const char *quick = terminal_open("sleep 1000 > /dev/null 2>&1 & echo $!");
	expect_result(terminal_ask("wait_for_exit", quick), exited_well);
	long background = pid_in(member_of(terminal_ask("output", quick), "output"));
	expect_result(terminal_ask("release", quick), "{}");
	assert_true(world_is_alive(world, daemon));
	toolhost_end_session(fixture.toolhost, fixture.session);
	expect_failure(wait, "EDITOR_GONE", "session has ended");
	world_expect_gone(world, daemon);
	world_expect_gone(world, background);
}

/* ---- limits ---- */

/* Each opens a pipe, which blocks until there is a writer, so that none of them polls. */
static void a_hundred_run_at_once(struct world *world)
{
	enum { COUNT = 100 };
	static int calls[COUNT];
	char id[32];
	char expected[16];
	struct run writer;
	world_shell(world, "mkfifo go");
	for (int i = 0; i < COUNT; i++) {
		calls[i] = ask("terminal/create", "\"command\":\": < go; echo %d\"", i);
	}
	for (int i = 0; i < COUNT; i++) {
		result_of(calls[i]);
	}
	expect_failure(ask("terminal/create", "\"command\":\"true\""), "RESOURCE_LIMIT_EXCEEDED",
		"100 terminals | max-terminals");
	run_start_shell(&writer, world, "exec sleep 1000 <> go");
	for (int i = 0; i < COUNT; i++) {
		snprintf(id, sizeof(id), "%s", member_of(calls[i], "terminalId"));
		snprintf(expected, sizeof(expected), "%d\n", i);
		expect_result(terminal_ask("wait_for_exit", id), exited_well);
		assert_string_equal(member_of(terminal_ask("output", id), "output"), expected);
	}
	run_destroy(&writer);
}

static void what_takes_too_long_is_killed(struct world *world)
{
	fixture.limits.terminal_timeout_ms = 300;
	fixture_open();
	const char *id = terminal_open("sleep 1000 & echo $!; sleep 1000");
	expect_failure(
		terminal_ask("wait_for_exit", id), "TIMEOUT_EXCEEDED", "terminal-timeout (300 ms)");
	assert_non_null(strstr(result_of(terminal_ask("output", id)), killed_status));
	world_expect_gone(world, pid_in(member_of(terminal_ask("output", id), "output")));
}

static const struct world_case cases[] = {
	{"output is interleaved as written", output_is_interleaved_as_written},
	{"exit code and signal are apart", code_and_signal_are_apart},
	{"the tail is kept at a character", the_tail_is_kept_at_a_character},
	{"the end of much output is kept", the_end_of_much_output_is_kept},
	{"nobody types and nothing waits for a pager", nobody_types_and_nothing_waits_for_a_pager},
	{"without args it is a shell line", without_args_it_is_a_shell_line},
	{"a command starts inside the roots alone", it_starts_inside_the_roots_alone},
	{"several wait for the exit", several_wait_for_the_exit},
	{"after kill there is output", after_kill_there_is_output},
	{"release answers who waits", release_answers_who_waits},
	{"unknown and released terminals are refused", unknown_and_released_ids_are_refused},
	{"kill and release end the process group", kill_and_release_end_the_group},
	{"the tree ends with the session", the_tree_ends_with_the_session},
	{"a hundred terminals run at once", a_hundred_run_at_once},
	{"a command that takes too long is killed", what_takes_too_long_is_killed},
};
const struct world_table terminal_cases = {cases, ARRAY_LENGTH(cases), tools_begin, tools_end};
