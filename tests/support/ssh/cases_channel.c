/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/ssh/client_cases.h"

/* Channels of a connection that goes well. */
enum { MANY = 32 * 1024 * 1024 };

static void test_output_status_and_order(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	assert_string_equal(ssh_client_name(connection.client), world->name);
	flow_open(&flow, &connection, "echo out; echo err >&2; exit 3");
	flow_expect_end(&flow, 3);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "out\n");
	assert_string_equal(flow_text(&flow, SSH_STREAM_ERR), "err\n");
	flow_close(&flow);
	connection_close(&connection);
}

static void test_half_close(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	/* Bytes that were written before the channel is open are kept. */
	flow_run(&flow, &connection, "wc -c; sleep 0.1; echo after", "12345");
	flow_expect_end(&flow, 0);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "5\nafter\n");
	flow_close(&flow);
	connection_close(&connection);
}

static void test_a_command_killed_by_a_signal(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_run(&flow, &connection, "kill -9 $$", "");
	assert_int_equal(flow.told[strlen(flow.told) - 1], 'c');
	/* Not every client is told about signals; none turns one into a status. */
	assert_true(!flow.end.is_known || flow.end.signal == SIGKILL);
	flow_close(&flow);
	connection_close(&connection);
}

static void check_many(struct client_world *world, size_t take_max)
{
	struct connection connection = {0};
	struct flow flow = {.take_max = take_max};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "exec cat");
	size_t count = take_max > 0 ? MANY / 16 : MANY;
	flow_send_pattern(&flow, count);
	flow_expect_end(&flow, 0);
	assert_int_equal(flow.total[0], count);
	assert_true(flow.hash[0] == pattern_hash(count));
	flow_close(&flow);
	connection_close(&connection);
}

static void test_many_bytes_both_ways(struct client_world *world)
{
	check_many(world, 0);
}

static void test_bytes_taken_in_small_parts(struct client_world *world)
{
	check_many(world, 1000);
}

static void test_a_reader_that_has_stopped_holds_up_nobody_else(struct client_world *world)
{
	struct connection connection = {0};
	struct flow held = {.takes_nothing = true}, other = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&held, &connection, "head -c 20000000 /dev/zero");
	client_run_until(world, &held.has_bytes);
	flow_run(&other, &connection, "head -c 3000000 /dev/zero", "");
	flow_expect_end(&other, 0);
	assert_int_equal(other.total[0], 3000000);
	flow_close(&other);
	assert_string_equal(held.told, "o");
	assert_int_equal(held.total[0], 0);
	held.takes_nothing = false;
	ssh_channel_resume(held.channel, SSH_STREAM_OUT);
	assert_int_equal(held.total[0], 0); // nothing is raised from inside
	flow_expect_end(&held, 0);
	assert_int_equal(held.total[0], 20000000);
	flow_close(&held);
	connection_close(&connection);
}

static void test_a_command_that_does_not_read(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0}, other = {0};
	char bytes[64 * 1024] = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "sleep 0.5; echo bye");
	size_t taken = 0, sum = 0;
	do { // the amount that is held on the way is limited
		taken = ssh_channel_write(flow.channel, (struct span){bytes, sizeof(bytes)});
		sum += taken;
		client_run_for(world, 2);
	} while (taken == sizeof(bytes) && sum < 64 * 1024 * 1024);
	assert_true(sum < 16 * 1024 * 1024);
	flow_run(&other, &connection, "echo there", "");
	flow_expect_end(&other, 0);
	flow_close(&other);
	client_run_until(world, &flow.is_over);
	assert_string_equal(flow_text(&flow, SSH_STREAM_OUT), "bye\n");
	flow_close(&flow);
	connection_close(&connection);
}

static void test_more_channels_than_the_server_takes(struct client_world *world)
{
	enum { COUNT = 12, TAKEN = 10 };
	struct connection connection = {0};
	struct flow flows[COUNT] = {0}, more = {0};
	int refused = 0;
	client_world_start(world, &(struct sshd_spec){.config = "MaxSessions 10\n"});
	connection_expect_ready(&connection, world);
	for (int i = 0; i < COUNT; i++) {
		flow_open(&flows[i], &connection, "read line; echo $line");
		client_run_until(world, flows[i].is_over ? &flows[i].is_over
					: i < TAKEN      ? &flows[i].is_open
							 : &flows[i].is_over);
	}
	for (int i = 0; i < COUNT; i++) {
		if (strcmp(flows[i].told, "r") == 0) {
			assert_int_equal(flows[i].err.code, ERROR_LIMIT);
			refused++;
		}
	}
	assert_int_equal(refused, COUNT - TAKEN);
	for (int i = 0; i < TAKEN; i++) {
		char line[16];
		snprintf(line, sizeof(line), "%d\n", i);
		(void)ssh_channel_write(flows[i].channel, span_of(line));
		flow_expect_end(&flows[i], 0);
		assert_string_equal(flow_text(&flows[i], SSH_STREAM_OUT), line);
	}
	for (int i = 0; i < COUNT; i++) {
		flow_close(&flows[i]);
	}
	/* The server may get the new one before it has cleaned up after the old one. */
	for (int i = 0; i < 2000 && !more.is_open; i++) {
		more = (struct flow){0};
		flow_open(&more, &connection, "echo again");
		client_run_until(world, &more.is_over);
		assert_string_equal(more.is_open ? "" : more.told, more.is_open ? "" : "r");
		flow_close(&more);
		client_run_for(world, 10);
	}
	assert_true(more.is_open);
	connection_close(&connection);
}

static void test_a_closed_channel_ends_its_command(struct client_world *world)
{
	struct connection connection = {0};
	struct flow flow = {0}, other = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_open(&flow, &connection, "cat; echo gone > $HOME/gone");
	client_run_until(world, &flow.is_open);
	flow_close(&flow);
	flow_run(&other, &connection,
		"i=0; while [ $i -lt 1200 ] && [ ! -e $HOME/gone ]; do sleep 0.05; "
		"i=$((i + 1)); done; cat $HOME/gone",
		"");
	flow_expect_end(&other, 0);
	assert_string_equal(flow_text(&other, SSH_STREAM_OUT), "gone\n");
	flow_close(&other);
	connection_close(&connection);
}

static void test_handlers_close_their_channel(struct client_world *world)
{
	static const char events[] = "ob12c";
	struct connection connection = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	for (const char *event = events; *event; event++) {
		struct flow flow = {.close_at = *event};
		flow_open(&flow, &connection, "echo out; echo err >&2");
		client_run_until(world, &flow.is_over);
		assert_null(flow.channel);
	}
	client_run_for(world, 50);
	connection_close(&connection);
}

static void test_handlers_close_the_client(struct client_world *world)
{
	static const char *const moments[] = {"ready", "Authenticating"};
	client_world_start(world, NULL);
	for (size_t i = 0; i < 2; i++) {
		struct connection connection = {.close_at = moments[i]};
		connection_open(&connection, world);
		client_run_until(world, &connection.is_over);
		assert_null(connection.client);
	}
	client_run_for(world, 50);
}

static void test_a_client_is_closed_with_channels_in_every_state(struct client_world *world)
{
	struct connection connection = {0};
	struct flow done = {0}, running = {0}, held = {.takes_nothing = true}, fresh = {0};
	client_world_start(world, NULL);
	connection_expect_ready(&connection, world);
	flow_run(&done, &connection, "echo", "");
	flow_open(&held, &connection, "head -c 1000000 /dev/zero");
	client_run_until(world, &held.has_bytes);
	flow_open(&running, &connection, "exec cat");
	client_run_until(world, &running.is_open);
	(void)ssh_channel_write(running.channel, SPAN_LITERAL("x"));
	flow_open(&fresh, &connection, "echo");
	connection_close(&connection); // frees them all
	client_run_for(world, 50);
	struct flow *all[] = {&done, &running, &held, &fresh};
	for (size_t i = 0; i < 4; i++) {
		buf_finish(&all[i]->kept[0]);
		buf_finish(&all[i]->kept[1]);
	}
	assert_string_equal(running.told, "o");
	assert_string_equal(fresh.told, "");
}

#define CASE(name)                                                                                 \
	{                                                                                          \
#name, name                                                                        \
	}

static const struct client_case cases[] = {
	CASE(test_output_status_and_order),
	CASE(test_half_close),
	CASE(test_a_command_killed_by_a_signal),
	CASE(test_many_bytes_both_ways),
	CASE(test_bytes_taken_in_small_parts),
	CASE(test_a_reader_that_has_stopped_holds_up_nobody_else),
	CASE(test_a_command_that_does_not_read),
	CASE(test_more_channels_than_the_server_takes),
	CASE(test_a_closed_channel_ends_its_command),
	CASE(test_handlers_close_their_channel),
	CASE(test_handlers_close_the_client),
	CASE(test_a_client_is_closed_with_channels_in_every_state),
};

const struct client_table client_channel_cases = {cases, sizeof(cases) / sizeof(cases[0])};
