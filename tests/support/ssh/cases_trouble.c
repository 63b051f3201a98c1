/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "tests/support/ssh/client_cases.h"

/* Connections that are cut or freeze, in each phase. */
static void kill_them(struct connection *connection, const char *text)
{
	if (strstr(text, "Authenticating")) {
		sshd_kill_connections(&connection->world->sshd);
	}
}

static void freeze(struct connection *connection, const char *text)
{
	if (strstr(text, "Authenticating")) {
		sshd_freeze(&connection->world->sshd);
	}
}

static void expect_lost(struct flow *flow)
{
	client_run_until(flow->connection->world, &flow->is_over);
	assert_int_equal(flow->told[strlen(flow->told) - 1], 'l');
	assert_string_equal(flow->err.reason, "LINK_LOST");
}

static void test_a_killed_connection_is_told_to_all(struct client_world *world)
{
	struct connection connection = {0};
	struct flow running = {0}, held = {.takes_nothing = true}, done = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_run(&done, &connection, "exit 4", "");
	flow_expect_end(&done, 4);
	flow_open(&running, &connection, "exec cat");
	flow_open(&held, &connection, "head -c 10000000 /dev/zero");
	client_run_until(world, &running.is_open);
	client_run_until(world, &held.has_bytes);
	sshd_kill_connections(&world->sshd);
	client_run_until(world, &connection.is_lost);
	assert_string_equal(connection.told, "rl");
	assert_string_equal(connection.err.reason, "LINK_LOST");
	expect_lost(&running);
	expect_lost(&held);
	assert_string_equal(running.told, "ol");
	assert_null(strchr(done.told, 'l'));
	flow_close(&running);
	flow_close(&held);
	flow_close(&done);
	connection_close(&connection);
}

static void test_a_handler_closes_the_lost_client(struct client_world *world)
{
	struct connection connection = {.close_at = "lost"};
	struct flow flow = {.close_at = 'l'};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "exec cat");
	client_run_until(world, &flow.is_open);
	sshd_kill_connections(&world->sshd);
	client_run_until(world, &connection.is_lost);
	assert_null(connection.client);
	assert_null(flow.channel);
}

static void test_a_frozen_host_is_noticed_by_its_silence(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	world->target.alive_interval_ms = 1000;
	world->target.alive_count_max = 2;
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "exec cat");
	client_run_until(world, &flow.is_open);
	sshd_freeze(&world->sshd);
	client_run_until(world, &connection.is_lost);
	sshd_thaw(&world->sshd);
	assert_string_equal(connection.err.reason, "LINK_LOST");
	expect_lost(&flow);
	flow_close(&flow);
	connection_close(&connection);
}

static void test_a_short_freeze_is_survived(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "exec cat");
	client_run_until(world, &flow.is_open);
	sshd_freeze(&world->sshd);
	(void)ssh_channel_write(flow.channel, SPAN_LITERAL("still here"));
	ssh_channel_send_eof(flow.channel);
	client_run_for(world, 300);
	assert_false(flow.is_over);
	sshd_thaw(&world->sshd);
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "still here");
	flow_close(&flow);
	connection_close(&connection);
}

static void expect_late(struct client_world *world, struct connection *connection)
{
	long long begin_ms = clock_now_ms();
	connection_expect_failure(connection, world, "TIMEOUT_EXCEEDED|HOST_UNREACHABLE", "");
	assert_true(clock_now_ms() - begin_ms < 30000);
	sshd_thaw(&world->sshd);
	connection_close(connection);
}

static void test_a_host_that_is_frozen_at_first(struct client_world *world)
{
	struct connection connection = {0};
	client_world_start(world, NULL);
	world->target.connect_timeout_ms = 1000;
	sshd_freeze(&world->sshd);
	expect_late(world, &connection);
}

static void test_a_host_that_freezes_while_authenticating(struct client_world *world)
{
	struct connection connection = {.on_progress = freeze};
	client_world_start(world, NULL);
	world->target.auth_timeout_ms = 1000;
	expect_late(world, &connection);
	assert_non_null(strstr(connection.progress, "Authenticating"));
}

static void test_a_host_that_cuts_while_authenticating(struct client_world *world)
{
	struct connection connection = {.on_progress = kill_them};
	client_world_start(world, NULL);
	connection_expect_failure(&connection, world, "HOST_UNREACHABLE|LINK_LOST|AUTH_FAILED", "");
	connection_close(&connection);
}

static void test_a_host_that_goes_in_the_middle_of_a_stream(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "cat /dev/zero");
	client_run_until(world, &flow.has_bytes);
	sshd_kill_connections(&world->sshd);
	expect_lost(&flow);
	assert_null(strchr(flow.told, 'c')); // never a status
	client_run_until(world, &connection.is_lost);
	flow_close(&flow);
	connection_close(&connection);
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_a_killed_connection_is_told_to_all),
	CASE(test_a_handler_closes_the_lost_client),
	CASE(test_a_frozen_host_is_noticed_by_its_silence),
	CASE(test_a_short_freeze_is_survived),
	CASE(test_a_host_that_is_frozen_at_first),
	CASE(test_a_host_that_freezes_while_authenticating),
	CASE(test_a_host_that_cuts_while_authenticating),
	CASE(test_a_host_that_goes_in_the_middle_of_a_stream),
};

const struct client_table client_trouble_cases = {cases, sizeof(cases) / sizeof(cases[0])};
