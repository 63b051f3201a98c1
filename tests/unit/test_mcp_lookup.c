/* SPDX-License-Identifier: MIT */
#include "tests/unit/stage.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "broker/agent/mcp_lookup.h"

enum { SHORT_MS = 30, LONG_MS = 60000 };

/* A sandbox on a stage, and a lookup of the commands "a" and "b" in it. */
struct fixture {
	struct stage stage;
	struct sandbox *sandbox;
	struct mcp_commands commands;
	struct mcp_lookup *lookup;
	bool destroys_when_done;
	bool is_done;
};

static void on_ready(void *data)
{
}

static void on_failed(void *data, const struct error *err)
{
	fail_msg("%s", err->text);
}

static const struct sandbox_listener sandbox_listener = {
	.on_ready = on_ready, .on_failed = on_failed};

static int set_up(void **state)
{
	struct error err;
	struct fixture *fixture = mem_alloc_zero(sizeof(*fixture));
	*state = fixture;
	stage_init(&fixture->stage);
	struct settings settings;
	settings_init(&settings);
	struct sandbox_request request = {.profile = "p", .settings = &settings};
	fixture->sandbox = sandbox_prepare(
		&fixture->stage.provider, &request, &sandbox_listener, fixture, &err);
	assert_non_null(fixture->sandbox);
	stage_settle(&fixture->stage);
	mcp_commands_init(&fixture->commands);
	mcp_commands_add(&fixture->commands, "a", "");
	mcp_commands_add(&fixture->commands, "b", "/p");
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;
	mcp_lookup_destroy(fixture->lookup);
	mcp_commands_finish(&fixture->commands);
	sandbox_close(fixture->sandbox);
	stage_finish(&fixture->stage);
	free(fixture);
	return 0;
}

static void on_done(void *data)
{
	struct fixture *fixture = data;
	assert_false(fixture->is_done);
	fixture->is_done = true;
	if (fixture->destroys_when_done) {
		mcp_lookup_destroy(fixture->lookup);
		fixture->lookup = NULL;
	}
}

static struct actor *start(struct fixture *fixture, int timeout_ms)
{
	static const char *const env[] = {"PATH=/x", NULL};
	struct mcp_lookup_config config = {
		.loop = fixture->stage.loop,
		.sandbox = fixture->sandbox,
		.env = env,
		.cwd = "/w",
		.timeout_ms = timeout_ms,
	};
	fixture->lookup = mcp_lookup_start(&config, &fixture->commands, on_done, fixture);
	assert_false(fixture->is_done);
	return fixture->stage.actor_count > 0 ? fixture->stage.actors[0] : NULL;
}

static void expect(struct fixture *fixture, enum mcp_command_state a, enum mcp_command_state b,
	const char *why)
{
	assert_int_equal(mcp_commands_state(&fixture->commands, "a", ""), a);
	assert_int_equal(mcp_commands_state(&fixture->commands, "b", "/p"), b);
	if (!strstr(fixture->commands.why_unknown, why)) {
		fail_msg("\"%s\" is not in \"%s\"", why, fixture->commands.why_unknown);
	}
}

static void test_one_process_answers_for_all(void **state)
{
	struct fixture *fixture = *state;
	fixture->destroys_when_done = true;
	struct actor *actor = start(fixture, LONG_MS);
	assert_string_equal(actor->argv[0], "/bin/sh");
	assert_string_equal(actor->argv[5], "a");
	assert_string_equal(actor->argv[7], "b");
	assert_string_equal(actor->env[0], "PATH=/x");
	actor_writes(actor, SPAN_LITERAL("y"));
	stage_settle(&fixture->stage);
	assert_false(fixture->is_done);
	actor_writes(actor, SPAN_LITERAL("n."));
	actor_dies(actor, 0, 0);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_EXISTS, MCP_COMMAND_MISSING, "");
	assert_string_equal(fixture->commands.why_unknown, "");
	assert_int_equal(fixture->stage.actor_count, 1);
}

static void test_an_answer_that_is_none_leaves_all_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, LONG_MS);
	actor_writes(actor, SPAN_LITERAL("Welcome!\ny"));
	actor_dies(actor, 0, 0);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "no answer");
}

static void test_a_shell_that_dies_leaves_all_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, LONG_MS);
	actor_writes(actor, SPAN_LITERAL("y"));
	actor_dies(actor, 0, 9);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "1 byte");
}

static void test_a_silent_one_is_ended_at_the_deadline(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, SHORT_MS);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "within 30 ms (mcp-timeout)");
	assert_non_null(strstr(actor->told, "destroyed"));
}

static void test_the_deadline_stops_while_the_connection_is_lost(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, SHORT_MS);
	sandbox_note_link(fixture->sandbox, false);
	long long until_ms = clock_now_ms() + 3 * SHORT_MS;
	while (clock_now_ms() < until_ms) {
		stage_wait_turn(&fixture->stage);
	}
	assert_false(fixture->is_done);
	sandbox_note_link(fixture->sandbox, true);
	actor_writes(actor, SPAN_LITERAL("yn."));
	actor_dies(actor, 0, 0);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_EXISTS, MCP_COMMAND_MISSING, "");
}

static void test_one_that_never_starts_is_ended_at_the_deadline(void **state)
{
	struct fixture *fixture = *state;
	fixture->stage.holds_start = true;
	start(fixture, SHORT_MS);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "mcp-timeout");
}

static void test_a_sandbox_that_refuses_is_told_and_not_from_inside(void **state)
{
	struct fixture *fixture = *state;
	fixture->destroys_when_done = true;
	error_set(&fixture->stage.exec_error, ERROR_SYSTEM, "no more processes");
	assert_null(start(fixture, LONG_MS));
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "no more processes");
}

static void test_a_sandbox_without_a_shell_is_told(void **state)
{
	struct fixture *fixture = *state;
	error_set(&fixture->stage.start_error, ERROR_NOT_FOUND, "/bin/sh: not found");
	start(fixture, LONG_MS);
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "/bin/sh: not found");
}

static void test_a_link_that_is_lost_leaves_all_unknown(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, LONG_MS);
	stage_settle(&fixture->stage);
	actor_writes(actor, SPAN_LITERAL("yy."));
	actor_is_lost(actor, "gone");
	stage_until(&fixture->stage, &fixture->is_done);
	expect(fixture, MCP_COMMAND_UNKNOWN, MCP_COMMAND_UNKNOWN, "lost");
}

static void test_one_that_is_destroyed_raises_nothing(void **state)
{
	struct fixture *fixture = *state;
	struct actor *actor = start(fixture, SHORT_MS);
	mcp_lookup_destroy(fixture->lookup);
	fixture->lookup = NULL;
	stage_settle(&fixture->stage);
	assert_false(fixture->is_done);
	assert_non_null(strstr(actor->told, "destroyed"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_process_answers_for_all),
		TEST(test_an_answer_that_is_none_leaves_all_unknown),
		TEST(test_a_shell_that_dies_leaves_all_unknown),
		TEST(test_a_silent_one_is_ended_at_the_deadline),
		TEST(test_the_deadline_stops_while_the_connection_is_lost),
		TEST(test_one_that_never_starts_is_ended_at_the_deadline),
		TEST(test_a_sandbox_that_refuses_is_told_and_not_from_inside),
		TEST(test_a_sandbox_without_a_shell_is_told),
		TEST(test_a_link_that_is_lost_leaves_all_unknown),
		TEST(test_one_that_is_destroyed_raises_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
