/* SPDX-License-Identifier: MIT */
#include "tests/unit/ssh_client_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/ssh/libssh2_client.h"

/* Channels of one connection to a real sshd. */

static struct sshd sshd;
static struct ssh_target target;
static struct client_record client;

static int start(void **state)
{
	sshd_start(&sshd, NULL);
	target_for(&target, &sshd);
	client_connect_ready(&client, &target);
	return 0;
}

static int stop(void **state)
{
	client_close(&client);
	ssh_target_finish(&target);
	sshd_stop(&sshd);
	return 0;
}

static void test_a_command_runs_and_its_streams_are_apart(void **state)
{
	struct channel_record channel;
	channel_run(&channel, &client, "echo out; echo err >&2; exit 7");
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "out\n");
	assert_string_equal(channel.heads[SSH_STREAM_ERR], "err\n");
	assert_true(channel.end.is_known);
	assert_int_equal(channel.end.code, 7);
	assert_string_equal(channel.events, "oEec");
}

static void test_progress_says_where_and_as_whom(void **state)
{
	char where[64];
	char who[128];
	snprintf(where, sizeof(where), "Connecting to box (127.0.0.1 port %d)\n", sshd.port);
	snprintf(who, sizeof(who), "Authenticating as %s\n", sshd.user);
	assert_non_null(strstr(client.progress, where));
	assert_non_null(strstr(client.progress, who));
}

static void test_a_signal_is_told_as_such(void **state)
{
	struct channel_record channel;
	channel_run(&channel, &client, "kill -TERM $$");
	assert_true(channel.end.is_known);
	assert_int_equal(channel.end.signal, SIGTERM);
}

static void test_a_status_of_zero_is_not_made_up(void **state)
{
	struct channel_record channel;
	channel_run(&channel, &client, "true");
	assert_false(channel.end.is_known);
	assert_int_equal(channel.end.code, 0);
}

static void test_bytes_before_open_and_the_half_close_arrive(void **state)
{
	struct channel_record channel;
	channel_open(&channel, &client, "cat; echo end");
	assert_int_equal(ssh_channel_write(channel.channel, SPAN_LITERAL("early\n")), 6);
	ssh_channel_send_eof(channel.channel);
	wait_event(&channel, 'c');
	assert_string_equal(channel.heads[SSH_STREAM_OUT], "early\nend\n");
	channel_close(&channel);
}

/* ---- much ---- */

enum { MUCH = 64 * 1024 * 1024, PIECE = 96 * 1024 };

struct feed {
	struct channel_record *channel;
	size_t left;
	unsigned long sum;
	char piece[PIECE];
	unsigned int seed;
};

/* Writes as much as there is room for, and ends with the half-close. */
static bool feed_on(void *data)
{
	struct feed *feed = data;
	while (feed->left > 0) {
		for (size_t i = 0; i < PIECE; i++) {
			feed->seed = feed->seed * 1103515245 + 12345;
			feed->piece[i] = (char)(feed->seed >> 16);
		}
		size_t size = feed->left < PIECE ? feed->left : PIECE;
		size_t taken =
			ssh_channel_write(feed->channel->channel, (struct span){feed->piece, size});
		feed->sum = sum_add(feed->sum, (struct span){feed->piece, taken});
		feed->left -= taken;
		if (feed->left == 0) {
			ssh_channel_send_eof(feed->channel->channel);
		}
		if (taken < size) {
			break;
		}
	}
	return channel_has(feed->channel, 'c') || channel_has(feed->channel, 'l');
}

/* Whether a tool keeps freed memory. */
static bool has_own_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
	return true;
#else
	return is_under_valgrind();
#endif
}

static size_t memory_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t kib = 0;
	while (fgets(line, sizeof(line), file)) {
		sscanf(line, "VmRSS: %zu", &kib);
	}
	fclose(file);
	return kib;
}

static void test_64_mib_go_there_and_back_in_bounded_memory(void **state)
{
	struct channel_record channel;
	struct feed *feed = calloc(1, sizeof(*feed));
	feed->channel = &channel;
	size_t all = is_under_valgrind() ? MUCH / 32 : MUCH;
	feed->left = all;
	size_t before_kib = memory_kib();
	channel_open(&channel, &client, "cat");
	loop_until(feed_on, feed);
	assert_false(channel_has(&channel, 'l'));
	assert_int_equal(channel.counts[SSH_STREAM_OUT], all);
	assert_int_equal(channel.sums[SSH_STREAM_OUT], feed->sum);
	size_t grown_kib = memory_kib() - before_kib;
	assert_true(has_own_memory() || grown_kib < 16 * 1024);
	channel_close(&channel);
	free(feed);
}

/* ---- holding back ---- */

static void test_a_held_stream_holds_the_server_back(void **state)
{
	struct channel_record channel;
	channel_open(&channel, &client, "yes | head -c 33554432; echo done >&2");
	channel.holds[SSH_STREAM_OUT] = true;
	loop_for_ms(700);
	size_t held_kib = memory_kib();
	loop_for_ms(700);
	assert_int_equal(channel.counts[SSH_STREAM_OUT], 0);
	assert_int_equal(channel.held_count[SSH_STREAM_OUT], 1);
	assert_true(has_own_memory() || memory_kib() < held_kib + 4 * 1024);
	/* The connection goes on in the meantime. */
	struct channel_record other;
	channel_run(&other, &client, "echo there");
	assert_string_equal(other.heads[SSH_STREAM_OUT], "there\n");
	channel.holds[SSH_STREAM_OUT] = false;
	ssh_channel_resume(channel.channel, SSH_STREAM_OUT);
	wait_event(&channel, 'c');
	assert_int_equal(channel.counts[SSH_STREAM_OUT], 33554432);
	channel_close(&channel);
}

static __typeof__(libssh2_channel_read_ex) *read_really;
static unsigned long narrowest;

static ssize_t read_and_look(LIBSSH2_CHANNEL *channel, int stream, char *bytes, size_t size)
{
	struct error err;
	unsigned long window = ssh2_open(&err)->channel_window_read_ex(channel, NULL, NULL);
	narrowest = window < narrowest ? window : narrowest;
	return read_really(channel, stream, bytes, size);
}

/* Our side widens the window early, so the server never waits until it may send more. */
static void test_the_window_is_widened_long_before_it_is_used_up(void **state)
{
	struct error err;
	struct ssh2 *ssh2 = (struct ssh2 *)(uintptr_t)ssh2_open(&err);
	struct channel_record channel;
	read_really = ssh2->channel_read_ex;
	ssh2->channel_read_ex = read_and_look;
	narrowest = CHANNEL_WINDOW;
	channel_run(&channel, &client, "yes | head -c 8388608");
	ssh2->channel_read_ex = read_really;
	assert_int_equal(channel.counts[SSH_STREAM_OUT], 8388608);
	assert_true(narrowest >= CHANNEL_WINDOW - CHANNEL_WINDOW_STEP);
}

/* Takes a little, over and over. */
static bool nibble(void *data)
{
	struct channel_record *channel = data;
	ssh_channel_resume(channel->channel, SSH_STREAM_OUT);
	return channel_has(channel, 'c');
}

static void test_a_stream_taken_in_bites_is_whole(void **state)
{
	struct channel_record whole;
	struct channel_record bites;
	static const char command[] = "seq 1 200000";
	channel_run(&whole, &client, command);
	channel_open(&bites, &client, command);
	bites.take_max[SSH_STREAM_OUT] = 3001;
	loop_until(nibble, &bites);
	assert_int_equal(bites.counts[SSH_STREAM_OUT], whole.counts[SSH_STREAM_OUT]);
	assert_int_equal(bites.sums[SSH_STREAM_OUT], whole.sums[SSH_STREAM_OUT]);
	channel_close(&bites);
}

static void test_a_writer_is_held_back_and_told_when_there_is_room(void **state)
{
	struct channel_record channel;
	channel_open(&channel, &client, "sleep 1; wc -c");
	char *much = calloc(1, SSH_CHANNEL_BUFFER + 1);
	struct span bytes = {much, SSH_CHANNEL_BUFFER + 1};
	assert_int_equal(ssh_channel_write(channel.channel, bytes), SSH_CHANNEL_BUFFER);
	wait_event(&channel, 'w');
	assert_int_equal(ssh_channel_write(channel.channel, (struct span){much, 1}), 1);
	ssh_channel_send_eof(channel.channel);
	wait_event(&channel, 'c');
	assert_int_equal(strtol(channel.heads[SSH_STREAM_OUT], NULL, 10), SSH_CHANNEL_BUFFER + 1);
	channel_close(&channel);
	free(much);
}

/* ---- many ---- */

enum { SESSIONS = 10, ASKED = 12 };

static bool all_settled(void *data)
{
	struct channel_record *channels = data;
	for (size_t i = 0; i < ASKED; i++) {
		if (!channels[i].events[0]) {
			return false;
		}
	}
	return true;
}

static void test_channels_over_the_servers_limit_are_refused_and_the_others_work(void **state)
{
	static struct channel_record channels[ASKED];
	for (size_t i = 0; i < ASKED; i++) {
		channel_open(&channels[i], &client, "read line; echo got $line");
	}
	loop_until(all_settled, channels);
	for (size_t i = 0; i < ASKED; i++) {
		assert_string_equal(channels[i].events, i < SESSIONS ? "o" : "r");
		if (i >= SESSIONS) {
			assert_int_equal(channels[i].err.code, ERROR_LIMIT);
			channel_close(&channels[i]);
		}
	}
	for (size_t i = 0; i < SESSIONS; i++) {
		char line[16];
		char expected[32];
		snprintf(line, sizeof(line), "%zu\n", i);
		snprintf(expected, sizeof(expected), "got %zu\n", i);
		ssh_channel_write(channels[i].channel, span_of(line));
		wait_event(&channels[i], 'c');
		assert_string_equal(channels[i].heads[SSH_STREAM_OUT], expected);
		channel_close(&channels[i]);
	}
	struct channel_record after;
	channel_run(&after, &client, "echo after");
	assert_string_equal(after.heads[SSH_STREAM_OUT], "after\n");
}

static bool is_answered(void *data)
{
	return channel_has(data, 'o') || channel_has(data, 'r') || channel_has(data, 'l');
}

/* The server frees a place when its process has ended; on a busy machine that takes long. */
static void open_soon(struct channel_record *channel)
{
	for (int i = 0; i < 100; i++) {
		channel_open(channel, &client, "cat");
		loop_until(is_answered, channel);
		if (!channel_has(channel, 'r')) {
			break;
		}
		channel_close(channel);
		loop_for_ms(100);
	}
	assert_true(channel_has(channel, 'o'));
}

static void test_closed_channels_give_their_places_back(void **state)
{
	for (int i = 0; i < 3 * SESSIONS; i++) {
		struct channel_record channel;
		open_soon(&channel);
		channel_close(&channel);
		loop_for_ms(10);
	}
	struct channel_record last;
	open_soon(&last);
	channel_close(&last);
	struct channel_record unopened;
	channel_open(&unopened, &client, "cat");
	channel_close(&unopened);
	loop_for_ms(100);
	assert_string_equal(unopened.events, "");
	struct channel_record after;
	channel_run(&after, &client, "echo after");
	assert_string_equal(after.heads[SSH_STREAM_OUT], "after\n");
	assert_int_equal(client.lost_count, 0);
}

static void test_bulk_and_small_messages_share_the_connection(void **state)
{
	struct channel_record bulk;
	struct channel_record small;
	channel_open(&bulk, &client, "yes | head -c 16777216");
	channel_open(&small, &client, "cat");
	wait_event(&small, 'o');
	for (size_t i = 1; i <= 50; i++) {
		ssh_channel_write(small.channel, SPAN_LITERAL("ping\n"));
		while (small.counts[SSH_STREAM_OUT] < 5 * i) {
			ev_run(client_world.loop, EVRUN_ONCE);
		}
	}
	wait_event(&bulk, 'c');
	assert_int_equal(bulk.counts[SSH_STREAM_OUT], 16777216);
	channel_close(&bulk);
	channel_close(&small);
}

int main(void)
{
	client_world_begin();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_command_runs_and_its_streams_are_apart),
		cmocka_unit_test(test_progress_says_where_and_as_whom),
		cmocka_unit_test(test_a_signal_is_told_as_such),
		cmocka_unit_test(test_a_status_of_zero_is_not_made_up),
		cmocka_unit_test(test_bytes_before_open_and_the_half_close_arrive),
		cmocka_unit_test(test_64_mib_go_there_and_back_in_bounded_memory),
		cmocka_unit_test(test_a_held_stream_holds_the_server_back),
		cmocka_unit_test(test_the_window_is_widened_long_before_it_is_used_up),
		cmocka_unit_test(test_a_stream_taken_in_bites_is_whole),
		cmocka_unit_test(test_a_writer_is_held_back_and_told_when_there_is_room),
		cmocka_unit_test(
			test_channels_over_the_servers_limit_are_refused_and_the_others_work),
		cmocka_unit_test(test_closed_channels_give_their_places_back),
		cmocka_unit_test(test_bulk_and_small_messages_share_the_connection),
	};
	int failed = cmocka_run_group_tests(tests, start, stop);
	client_world_end();
	return failed;
}
