/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "providers/mux/mux.h"

/*
 * Two sides with small pipes between them, which are read and written in random pieces and at
 * random moments. Streams begin, are written, are read slowly, end, and are given up at random.
 * Whatever happens, each stream must have the bytes that were written to it, in order, and
 * everything must end.
 */
enum {
	STREAMS = 24, // alive at once
	STEPS = 8000,
	PIECE_MAX = 5000,
	SETTLE_MAX = 2000000,
};

struct random {
	uint64_t state;
};

static size_t below(struct random *random, size_t limit)
{
	random->state ^= random->state << 13;
	random->state ^= random->state >> 7;
	random->state ^= random->state << 17;
	return (size_t)(random->state >> 11) % limit;
}

/* Byte number `at` of stream `number`. */
static char byte_of(uint32_t number, uint64_t at)
{
	return (char)((number * UINT64_C(2654435761) + at * 40503U) >> 7);
}

struct half {
	struct mux_stream *stream; // NULL: closed
	bool is_reset;
};

struct flow {
	uint32_t number; // 0: none
	struct half from;
	struct half to;
	uint64_t written;
	uint64_t read;
	bool is_finished;
	bool is_over; // the reader saw the end
	bool was_given_up;
};

struct world {
	struct random random;
	struct mux *sides[2]; // broker, runner
	int fds[2][2];        // of each side: reads, writes
	uint64_t now_us;
	struct flow flows[STREAMS];
	uint64_t messages_sent[2];
	uint64_t messages_read[2]; // by the other
};

static struct world world;

static void take_message(int from, const struct runner_message *message)
{
	assert_int_equal(message->id, world.messages_read[from] + 1);
	world.messages_read[from]++;
}

static void on_broker_message(void *data, const struct runner_message *message)
{
	take_message(1, message);
}

static void on_runner_message(void *data, const struct runner_message *message)
{
	take_message(0, message);
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
	assert_true(is_same_version);
}

static void on_text(void *data, struct span text)
{
}

static const struct mux_listener listeners[] = {
	{on_hello, on_broker_message, on_text, on_text},
	{on_hello, on_runner_message, on_text, on_text},
};

static void on_ready(void *data)
{
}

static void on_reset(void *data)
{
	struct half *half = data;
	half->is_reset = true;
	mux_stream_close(half->stream);
	half->stream = NULL;
}

static const struct mux_stream_listener stream_listener = {on_ready, on_ready, on_reset};

/* ---- the pipes ---- */

static void write_some(int side)
{
	struct span bytes = mux_output(world.sides[side], world.now_us);
	size_t most = 1 + below(&world.random, PIECE_MAX);
	bytes.len = bytes.len < most ? bytes.len : most;
	ssize_t count = bytes.len > 0 ? write(world.fds[side][1], bytes.data, bytes.len) : 0;
	assert_true(count >= 0 || errno == EAGAIN);
	mux_sent(world.sides[side], count > 0 ? (size_t)count : 0);
}

static void read_some(int side)
{
	char bytes[PIECE_MAX];
	struct error err = {0};
	ssize_t count = read(world.fds[side][0], bytes, 1 + below(&world.random, sizeof(bytes)));
	assert_true(count > 0 || (count < 0 && errno == EAGAIN));
	if (count > 0 && !mux_receive(world.sides[side], (struct span){bytes, (size_t)count},
				 world.now_us, &err)) {
		fail_msg("side %d: %s", side, err.text);
	}
}

/* ---- the streams ---- */

static void begin(struct flow *flow)
{
	struct error err;
	const struct runner_stream named = {mux_next_stream(world.sides[0]),
		below(&world.random, 3) == 0 ? 1 + below(&world.random, 10)
					     : 1 + below(&world.random, 100000)};
	int from = (int)below(&world.random, 2);
	enum mux_class class = below(&world.random, 2) ? MUX_AGENT : MUX_BULK;
	*flow = (struct flow){.number = named.stream};
	flow->from.stream = mux_open(
		world.sides[from], &named, MUX_OUT, class, &stream_listener, &flow->from, &err);
	flow->to.stream = mux_open(
		world.sides[!from], &named, MUX_IN, class, &stream_listener, &flow->to, &err);
	assert_true(flow->from.stream && flow->to.stream);
}

static void write_stream(struct flow *flow)
{
	char bytes[PIECE_MAX];
	size_t size = below(&world.random, sizeof(bytes));
	if (!flow->from.stream) {
		return;
	}
	for (size_t i = 0; i < size; i++) {
		bytes[i] = byte_of(flow->number, flow->written + i);
	}
	flow->written += mux_stream_write(flow->from.stream, (struct span){bytes, size});
}

static void read_stream(struct flow *flow, size_t most)
{
	if (!flow->to.stream) {
		return;
	}
	struct span bytes = mux_stream_peek(flow->to.stream);
	bytes.len = bytes.len < most ? bytes.len : most;
	for (size_t i = 0; i < bytes.len; i++) {
		assert_int_equal(bytes.data[i], byte_of(flow->number, flow->read + i));
	}
	flow->read += bytes.len;
	mux_stream_consume(flow->to.stream, bytes.len);
	if (mux_stream_is_over(flow->to.stream)) {
		assert_true(flow->is_finished && flow->read == flow->written);
		flow->is_over = true;
		mux_stream_close(flow->to.stream);
		flow->to.stream = NULL;
	}
}

static void finish(struct flow *flow)
{
	if (flow->from.stream) {
		flow->is_finished = true;
		mux_stream_finish(flow->from.stream);
		flow->from.stream = NULL;
	}
}

static void give_up(struct flow *flow)
{
	struct half *half = below(&world.random, 2) ? &flow->from : &flow->to;
	if (half->stream) {
		flow->was_given_up = true;
		mux_stream_close(half->stream);
		half->stream = NULL;
	}
}

static bool is_settled(const struct flow *flow)
{
	return flow->number == 0 || (!flow->from.stream && !flow->to.stream);
}

static void check_end(const struct flow *flow)
{
	if (flow->number != 0 && !flow->was_given_up) {
		assert_true(flow->is_over);
		assert_false(flow->from.is_reset || flow->to.is_reset);
	}
}

static void act(struct flow *flow)
{
	size_t choice = below(&world.random, 100);
	if (is_settled(flow)) {
		check_end(flow);
		begin(flow);
	} else if (choice < 45) {
		write_stream(flow);
	} else if (choice < 90) {
		read_stream(flow, below(&world.random, PIECE_MAX));
	} else if (choice < 93) {
		finish(flow);
	} else if (choice < 95) {
		give_up(flow);
	}
}

static void send_message(int side)
{
	struct error err;
	const struct runner_message message = {.kind = side == 0 ? RUNNER_KILL : RUNNER_EMPTIED,
		.id = world.messages_sent[side] + 1};
	if (mux_send(world.sides[side], &message, &err)) {
		world.messages_sent[side]++;
	}
}

/* ---- the test ---- */

static void connect_sides(void)
{
	struct error err;
	for (int side = 0; side < 2; side++) {
		int fds[2];
		assert_true(fd_pipe(fds, &err) && fd_set_nonblock(fds[0], true, &err) &&
			    fd_set_nonblock(fds[1], true, &err));
		(void)fcntl(fds[1], F_SETPIPE_SZ, 4096);
		world.fds[side][1] = fds[1];
		world.fds[!side][0] = fds[0];
	}
	for (int side = 0; side < 2; side++) {
		world.sides[side] = mux_create(side == 0 ? MUX_BROKER : MUX_RUNNER,
			&listeners[side], &world, world.now_us);
		mux_hello(world.sides[side], SPAN_LITERAL(""));
	}
}

static void exchange(void)
{
	int side = (int)below(&world.random, 2);
	world.now_us += below(&world.random, 300);
	if (below(&world.random, 2)) {
		write_some(side);
	} else {
		read_some(side);
	}
}

static bool all_are_settled(void)
{
	bool is_all = world.messages_sent[0] == world.messages_read[0] &&
	              world.messages_sent[1] == world.messages_read[1];
	for (int i = 0; i < STREAMS; i++) {
		is_all = is_all && is_settled(&world.flows[i]);
	}
	return is_all;
}

static void settle(void)
{
	for (int i = 0; i < STREAMS; i++) {
		finish(&world.flows[i]);
	}
	for (int i = 0; i < SETTLE_MAX && !all_are_settled(); i++) {
		exchange();
		read_stream(&world.flows[below(&world.random, STREAMS)], SIZE_MAX);
	}
	assert_true(all_are_settled());
	for (int i = 0; i < STREAMS; i++) {
		check_end(&world.flows[i]);
	}
}

static void run(uint64_t seed)
{
	world = (struct world){.random = {seed}, .now_us = 1000000};
	connect_sides();
	for (int i = 0; i < STEPS; i++) {
		exchange();
		exchange();
		act(&world.flows[below(&world.random, STREAMS)]);
		if (below(&world.random, 20) == 0) {
			send_message((int)below(&world.random, 2));
		}
	}
	settle();
	for (int side = 0; side < 2; side++) {
		mux_destroy(world.sides[side]);
		close(world.fds[side][0]);
		close(world.fds[side][1]);
	}
}

static void test_every_byte_arrives_once_and_in_order(void **state)
{
	static const uint64_t seeds[] = {1, 88172645463325252, 4711, 987654321, 31337, 2026};
	for (size_t i = 0; i < ARRAY_LENGTH(seeds); i++) {
		run(seeds[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_byte_arrives_once_and_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
