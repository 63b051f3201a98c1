/* SPDX-License-Identifier: MIT */
#include "tests/support/campaign.h"
#include "tests/unit/display_fixture.h"

#include <dirent.h>
#include <limits.h>

#include "base/fd.h"

/*
 * Calls, and ends of sessions and of ToolHosts, in any order and at any moment. The test requires
 * only that every call is answered once, and that nothing is left: no process, no descriptor, no
 * temporary file. It prints its seed; give the seed on the command line to repeat a run.
 */
enum { STEPS = 400, TERMINALS = 40, LEFT_WAIT_MS = 60000 };

static unsigned long long seed;
static uint64_t random_state;

static unsigned int below(unsigned int limit)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned int)(random_state >> 33) % limit;
}

/* Calls up to this one ended together with their ToolHost, and may have no answer. */
static int last_gone;

/* ---- steps ---- */

static void step_create(void)
{
	static const char *const commands[] = {
		"\"command\":\"true\"",
		"\"command\":\"echo hello; exit 3\"",
		"\"command\":\"sleep 1000\"",
		"\"command\":\"sleep 1000 & echo started\"",
		"\"command\":\"setsid sleep 1000 > /dev/null 2>&1 & sleep 0.02\"",
		"\"command\":\"yes | head -c 300000\",\"outputByteLimit\":1000",
		"\"command\":\"while :; do echo noise; sleep 0.005; done\"",
		"\"command\":\"no-such-command\",\"args\":[\"x\"]",
		"\"command\":\"trap '' TERM INT HUP; sleep 1000; sleep 1000\"",
		"\"command\":\"sleep 0.05\",\"cwd\":\"/etc\"",
	};
	ask_text("terminal/create", commands[below(ARRAY_LENGTH(commands))]);
}

static void step_terminal(void)
{
	static const char *const methods[] = {"terminal/output", "terminal/wait_for_exit",
		"terminal/wait_for_exit", "terminal/kill", "terminal/release", "terminal/release"};
	ask(methods[below(ARRAY_LENGTH(methods))], "\"terminalId\":\"term-%u\"",
		1 + below(TERMINALS));
}

static void step_file(void)
{
	unsigned int name = below(4);
	if (below(2)) {
		ask("fs/read_text_file", "\"path\":\"%s/f%u\"", fixture.roots[0], name);
	} else {
		ask("fs/write_text_file", "\"path\":\"%s/f%u\",\"content\":\"%u\"",
			fixture.roots[0], name, below(1000));
	}
}

static void step_show(void)
{
	char *message = NULL;
	assert_true(asprintf(&message,
			    "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{"
			    "\"sessionId\":\"%s\",\"update\":{\"sessionUpdate\":\"%s\","
			    "\"toolCallId\":\"t%u\",\"content\":[{\"type\":\"terminal\","
			    "\"terminalId\":\"term-%u\"},{\"type\":\"terminal\",\"terminalId\":"
			    "\"term-%u\"}]}}}",
			    fixture.session, below(2) ? "tool_call" : "tool_call_update", below(4),
			    1 + below(TERMINALS), 1 + below(TERMINALS)) > 0);
	edited(message, NULL, NULL);
	free(message);
}

static void step_wait(void)
{
	fixture_run_for((int)below(15));
}

static void step_session(void)
{
	fixture.session = below(2) ? "s1" : "s2";
}

static void step_editor(void)
{
	fixture.editor_is_slow = below(2);
	toolhost_flush_session(fixture.toolhost, fixture.session);
}

static void step_end(void)
{
	if (below(4) == 0) {
		toolhost_end_session(fixture.toolhost, fixture.session);
	} else if (below(4) == 0) {
		last_gone = fixture.last_id;
		fixture.editor_shows_terminals = below(2);
		fixture_open();
	}
}

static void (*const steps[])(void) = {step_create, step_create, step_terminal, step_terminal,
	step_terminal, step_terminal, step_file, step_file, step_show, step_show, step_wait,
	step_wait, step_wait, step_session, step_editor, step_end};

/* ---- leftovers ---- */

static bool all_are_answered(const void *data)
{
	for (int id = last_gone + 1; id <= fixture.last_id; id++) {
		if (!fixture.answers[id].is_there) {
			return false;
		}
	}
	return true;
}

static bool is_in_folder(const char *pid)
{
	char link[300];
	char cwd[PATH_MAX];
	snprintf(link, sizeof(link), "/proc/%s/cwd", pid);
	ssize_t len = readlink(link, cwd, sizeof(cwd) - 1);
	cwd[len > 0 ? len : 0] = '\0';
	return strncmp(cwd, fixture.folder, strlen(fixture.folder)) == 0;
}

/*
 * No process works in the folder of this test, in which all of them were started. A process that is
 * being started while its session ends appears there once more and is killed. So several looks in a
 * row must find nobody.
 */
static bool no_process_is_left(const void *data)
{
	enum { LOOKS = 10 };
	static int empty_looks;
	bool is_left = false;
	DIR *folder = opendir("/proc");
	assert_non_null(folder);
	for (struct dirent *entry = readdir(folder); entry && !is_left; entry = readdir(folder)) {
		is_left = is_in_folder(entry->d_name);
	}
	closedir(folder);
	empty_looks = is_left ? 0 : empty_looks + 1;
	return empty_looks >= LOOKS;
}

static void expect_no_temporary_file(void)
{
	DIR *folder = opendir(fixture.files);
	const struct dirent *entry;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		assert_null(strstr(entry->d_name, ".acp-broker-"));
	}
	closedir(folder);
}

static void test_every_call_is_answered_and_nothing_is_left(void **state)
{
	last_gone = 0;
	fixture.limits.max_terminals = 20;
	fixture.limits.terminal_timeout_ms = 200;
	fixture_open();
	for (int i = 0; i < STEPS; i++) {
		steps[below(ARRAY_LENGTH(steps))]();
	}
	fixture.editor_is_slow = false;
	toolhost_end_session(fixture.toolhost, "s1");
	toolhost_end_session(fixture.toolhost, "s2");
	assert_true(fixture_turn(all_are_answered, NULL, LEFT_WAIT_MS));
	assert_true(fixture_turn(no_process_is_left, NULL, LEFT_WAIT_MS));
	expect_no_temporary_file();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_LOCAL(test_every_call_is_answered_and_nothing_is_left),
		ON_FAKE(test_every_call_is_answered_and_nothing_is_left),
		ON_LOCAL(test_every_call_is_answered_and_nothing_is_left),
	};
	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : campaign_seed("ACP_BROKER_SEED");
	random_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	fprintf(stderr, "ACP_BROKER_SEED=%llu\n", seed);
	return fixture_run(tests, ARRAY_LENGTH(tests));
}
