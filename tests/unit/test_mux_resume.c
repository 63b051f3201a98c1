/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "providers/mux/mux.h"

/*
 * An exchange of two sides whose channel is lost after each byte, or each frame, of either
 * direction. Another channel takes its place, and everything must arrive as with one channel. The
 * runner sends back what arrives on the stdin of each process; the readers of some streams give
 * them up.
 */
enum { EXECS = 3, SIGNAL_EVERY = 97, TURNS_MAX = 100000 };

/* What happens in an exchange. */
struct plan {
	size_t input[EXECS]; // bytes that the broker writes
	size_t broker_wants; // of the output of exec 1; then it gives it up
	size_t runner_wants; // of the input of exec 2; then it gives it up, and ends
	uint64_t window;
	enum mux_class class;
};

static const struct plan short_plan = {.input = {900, 500, 500},
	.broker_wants = 150,
	.runner_wants = 120,
	.window = 260,
	.class = MUX_AGENT};
static const struct plan long_plan = {.input = {300000, 90000, 90000},
	.broker_wants = 50000,
	.runner_wants = 40000,
	.window = 65536,
	.class = MUX_BULK};

struct exec_end {
	struct mux_stream *in, *out; // NULL: none, or closed
	struct buf got;              // bytes that have come
	size_t written;
	bool is_over;     // the end of the stream has arrived
	bool was_reset;   // the stream that this side sends
	bool has_exited;  // EXITED was sent, or has come
	uint64_t signals; // SIGNAL, with this number, was the last
};

struct end {
	struct mux *mux;
	struct exec_end execs[EXECS];
	size_t hellos;
};

struct world {
	const struct plan *plan;
	struct end ends[2]; // broker, runner
	uint64_t now_us;

	/* The channel, by sender. */
	uint64_t carried[2];
	uint64_t frames[2];
	uint64_t frame_left[2]; // bytes until the next frame begins
	uint64_t begun[2];      // bytes of the mark that have been carried

	/* It is lost when this much of a direction has been carried. */
	int cut_side;
	uint64_t cut_bytes;
	uint64_t cut_frames;
	size_t cuts;
};

static struct world world;

static char byte_of(size_t exec, size_t at)
{
	return (char)(exec * 31 + at * 7 + at / 251);
}

static void on_reset(void *data)
{
	struct exec_end *exec = data;
	/* Closes the stream that the other side gives up; this side sends on only one of them. */
	struct mux_stream **stream =
		exec->written > 0 && exec == &world.ends[1].execs[1] ? &exec->out : &exec->in;
	mux_stream_close(*stream);
	*stream = NULL;
	exec->was_reset = true;
}

static void on_ready(void *data)
{
}

static const struct mux_stream_listener stream_listener = {on_ready, on_ready, on_reset};

/* ---- what both sides do ---- */

static void open_ends(struct end *end, size_t index, const struct runner_exec *exec, bool is_broker)
{
	struct error err;
	struct exec_end *self = &end->execs[index];
	self->in = mux_open(end->mux, &exec->in, is_broker ? MUX_OUT : MUX_IN, world.plan->class,
		&stream_listener, self, &err);
	self->out = mux_open(end->mux, &exec->out, is_broker ? MUX_IN : MUX_OUT, world.plan->class,
		&stream_listener, self, &err);
	assert_true(self->in && self->out);
}

static void keep(struct exec_end *exec, struct mux_stream *stream, size_t most)
{
	struct error err;
	struct span bytes = mux_stream_peek(stream);
	bytes.len = bytes.len < most ? bytes.len : most;
	assert_true(bytes.len == 0 || buf_append(&exec->got, bytes, &err));
	mux_stream_consume(stream, bytes.len);
	exec->is_over = mux_stream_is_over(stream);
}

static void tell(struct end *end, enum runner_kind kind, size_t index, uint64_t number)
{
	struct error err;
	struct runner_message message = {.kind = kind, .id = index + 1};
	if (kind == RUNNER_SIGNAL) {
		message.signal = number;
	}
	assert_true(mux_send(end->mux, &message, &err));
}

/* ---- the broker ---- */

static void start_exec(struct end *end, size_t index)
{
	struct error err;
	const char *const words[] = {"cat", NULL};
	struct runner_message message = {.kind = RUNNER_EXEC,
		.id = index + 1,
		.exec = {.argv = {.list = words},
			.env = {.list = words + 1},
			.cwd = SPAN_LITERAL("/"),
			.in = {mux_next_stream(end->mux), world.plan->window},
			.out = {mux_next_stream(end->mux) + 1, world.plan->window}}};
	open_ends(end, index, &message.exec, true);
	assert_true(mux_send(end->mux, &message, &err));
}

static void write_input(struct end *end, size_t index)
{
	struct exec_end *exec = &end->execs[index];
	while (exec->in && exec->written < world.plan->input[index]) {
		char bytes[SIGNAL_EVERY];
		size_t most = SIGNAL_EVERY - exec->written % SIGNAL_EVERY;
		size_t left = world.plan->input[index] - exec->written;
		most = most < left ? most : left;
		for (size_t i = 0; i < most; i++) {
			bytes[i] = byte_of(index, exec->written + i);
		}
		size_t taken = mux_stream_write(exec->in, (struct span){bytes, most});
		exec->written += taken;
		if (taken < most) {
			return;
		}
		bool is_told =
			exec->written % SIGNAL_EVERY == 0 && exec->written / SIGNAL_EVERY % 16 == 1;
		if (is_told) {
			tell(end, RUNNER_SIGNAL, index, ++exec->signals);
		}
	}
	if (exec->in) {
		mux_stream_finish(exec->in);
		exec->in = NULL;
	}
}

static void read_output(struct end *end, size_t index)
{
	struct exec_end *exec = &end->execs[index];
	size_t most = index == 1 ? world.plan->broker_wants - exec->got.len : SIZE_MAX;
	if (exec->out) {
		keep(exec, exec->out, most);
	}
	bool is_enough = index == 1 && exec->got.len == world.plan->broker_wants;
	if (exec->out && (exec->is_over || is_enough)) {
		mux_stream_close(exec->out);
		exec->out = NULL;
	}
}

static void on_broker_message(void *data, const struct runner_message *message)
{
	struct exec_end *exec = &world.ends[0].execs[message->id - 1];
	assert_int_equal(message->kind, RUNNER_EXITED);
	assert_false(exec->has_exited);
	exec->has_exited = true;
}

/* ---- the runner ---- */

static void on_runner_message(void *data, const struct runner_message *message)
{
	struct end *end = &world.ends[1];
	size_t index = (size_t)message->id - 1;
	struct exec_end *exec = &end->execs[index];
	if (message->kind == RUNNER_EXEC) {
		assert_null(exec->in);
		open_ends(end, index, &message->exec, false);
		return;
	}
	assert_int_equal(message->kind, RUNNER_SIGNAL);
	assert_int_equal(message->signal, ++exec->signals);
}

static void give_back(struct end *end, size_t index)
{
	struct exec_end *exec = &end->execs[index];
	if (exec->in) {
		size_t room = index == 2 ? world.plan->runner_wants - exec->got.len : SIZE_MAX;
		size_t unsent = exec->got.len - exec->written;
		keep(exec, exec->in, unsent > world.plan->window ? 0 : room < 4096 ? room : 4096);
	}
	bool is_enough = index == 2 && exec->got.len == world.plan->runner_wants;
	if (exec->in && (exec->is_over || is_enough)) {
		mux_stream_close(exec->in);
		exec->in = NULL;
		exec->is_over = true;
	}
	struct span all = buf_span(&exec->got);
	if (exec->out && exec->written < all.len) {
		exec->written += mux_stream_write(exec->out,
			(struct span){all.data + exec->written, all.len - exec->written});
	}
	if (exec->is_over && (!exec->out || exec->written == all.len) && !exec->has_exited) {
		exec->has_exited = true;
		tell(end, RUNNER_EXITED, index, 0);
		if (exec->out) {
			mux_stream_finish(exec->out);
			exec->out = NULL;
		}
	}
}

/* ---- the channel ---- */

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct end *end = data;
	assert_true(is_same_version);
	end->hellos++;
}

static void on_text(void *data, struct span text)
{
}

static const struct mux_listener listeners[] = {
	{on_hello, on_broker_message, on_text, on_text},
	{on_hello, on_runner_message, on_text, on_text},
};

/* How many of the bytes are carried, and whether the channel is then lost. */
static size_t carried_of(int side, struct span bytes, bool *out_is_lost)
{
	*out_is_lost = false;
	for (size_t i = 0; i < bytes.len; i++) {
		bool is_mine = side == world.cut_side;
		if (is_mine && world.carried[side] + i == world.cut_bytes) {
			*out_is_lost = true;
			return i;
		}
		if (world.begun[side] < sizeof(RUNNER_MARK) - 1) {
			world.begun[side]++;
			continue;
		}
		if (world.frame_left[side] == 0) {
			if (is_mine && world.frames[side] == world.cut_frames) {
				*out_is_lost = true;
				return i;
			}
			struct runner_header header;
			assert_true(i + RUNNER_HEADER <= bytes.len);
			assert_true(runner_get_header(bytes.data + i, &header));
			world.frame_left[side] = RUNNER_HEADER + header.size;
			world.frames[side]++;
		}
		world.frame_left[side]--;
	}
	return bytes.len;
}

static void begin_channel(void)
{
	memset(world.carried, 0, sizeof(world.carried));
	memset(world.frames, 0, sizeof(world.frames));
	memset(world.frame_left, 0, sizeof(world.frame_left));
	memset(world.begun, 0, sizeof(world.begun));
	for (int side = 0; side < 2; side++) {
		mux_hello(world.ends[side].mux, SPAN_LITERAL("build=0\n"));
	}
}

/* Returns whether anything was carried. */
static bool carry(int side)
{
	struct error err = {0};
	bool is_lost;
	world.now_us += 50;
	struct span bytes = mux_output(world.ends[side].mux, world.now_us);
	if (bytes.len == 0) {
		return false;
	}
	size_t len = carried_of(side, bytes, &is_lost);
	world.carried[side] += len;
	if (len > 0 && !mux_receive(world.ends[!side].mux, (struct span){bytes.data, len},
			       world.now_us, &err)) {
		fail_msg("side %d: %s", side, err.text);
	}
	mux_sent(world.ends[side].mux, len);
	if (is_lost) {
		world.cuts++;
		world.cut_side = -1;
		mux_restart(world.ends[0].mux, world.now_us);
		mux_restart(world.ends[1].mux, world.now_us);
		begin_channel();
	}
	return true;
}

static bool act_and_carry(void)
{
	for (size_t i = 0; i < EXECS; i++) {
		write_input(&world.ends[0], i);
		read_output(&world.ends[0], i);
		if (world.ends[1].execs[i].in || world.ends[1].execs[i].got.len > 0) {
			give_back(&world.ends[1], i);
		}
	}
	size_t cuts = world.cuts;
	bool has_moved = carry(0);
	return world.cuts > cuts || carry(1) || has_moved;
}

/* ---- an exchange ---- */

static void begin(const struct plan *plan, int cut_side, uint64_t cut_bytes, uint64_t cut_frames)
{
	world = (struct world){.plan = plan,
		.now_us = 1000000,
		.cut_side = cut_side,
		.cut_bytes = cut_bytes,
		.cut_frames = cut_frames};
	for (int side = 0; side < 2; side++) {
		struct end *end = &world.ends[side];
		end->mux = mux_create(
			side == 0 ? MUX_BROKER : MUX_RUNNER, &listeners[side], end, world.now_us);
		for (size_t i = 0; i < EXECS; i++) {
			buf_init(&end->execs[i].got, 1 << 20);
		}
	}
	begin_channel();
	for (size_t i = 0; i < EXECS; i++) {
		start_exec(&world.ends[0], i);
	}
}

static void check_bytes(const struct exec_end *exec, size_t index, size_t size)
{
	assert_int_equal(exec->got.len, size);
	for (size_t at = 0; at < size; at++) {
		if (buf_span(&exec->got).data[at] != byte_of(index, at)) {
			fail_msg("exec %zu: byte %zu is another", index, at);
		}
	}
}

/* Checks everything that an exchange without a cut has. */
static void check_all(void)
{
	const struct plan *plan = world.plan;
	const struct exec_end *broker = world.ends[0].execs;
	const struct exec_end *runner = world.ends[1].execs;
	check_bytes(&broker[0], 0, plan->input[0]);
	check_bytes(&runner[0], 0, plan->input[0]);
	check_bytes(&broker[1], 1, plan->broker_wants);
	check_bytes(&runner[1], 1, plan->input[1]);
	check_bytes(&broker[2], 2, plan->runner_wants);
	check_bytes(&runner[2], 2, plan->runner_wants);
	assert_true(broker[0].is_over && broker[2].is_over && runner[0].is_over);
	for (size_t i = 0; i < EXECS; i++) {
		assert_true(broker[i].has_exited);
		assert_true(!broker[i].in && !broker[i].out && !runner[i].in && !runner[i].out);
	}
	assert_int_equal(runner[0].signals, broker[0].signals);
	assert_int_equal(runner[1].signals, broker[1].signals);
	assert_int_equal(runner[2].signals, broker[2].signals);
	assert_true(mux_is_resumed(world.ends[0].mux) && mux_is_resumed(world.ends[1].mux));
}

static void end(void)
{
	for (int side = 0; side < 2; side++) {
		mux_destroy(world.ends[side].mux);
		for (size_t i = 0; i < EXECS; i++) {
			buf_finish(&world.ends[side].execs[i].got);
		}
	}
}

static void run_to_end(void)
{
	size_t turns = 0;
	while (act_and_carry()) {
		assert_true(++turns < TURNS_MAX);
	}
	check_all();
}

static void measure(const struct plan *plan, uint64_t bytes[2], uint64_t frames[2])
{
	begin(plan, -1, 0, 0);
	run_to_end();
	memcpy(bytes, world.carried, sizeof(world.carried));
	memcpy(frames, world.frames, sizeof(world.frames));
	end();
}

/* ---- tests ---- */

static void test_a_cut_after_every_byte_loses_and_doubles_nothing(void **state)
{
	uint64_t bytes[2];
	uint64_t frames[2];
	measure(&short_plan, bytes, frames);
	assert_true(bytes[0] + bytes[1] >= 4096);
	for (int side = 0; side < 2; side++) {
		for (uint64_t at = 0; at < bytes[side]; at++) {
			begin(&short_plan, side, at, UINT64_MAX);
			run_to_end();
			assert_int_equal(world.cuts, 1);
			end();
		}
	}
}

static void test_a_cut_after_every_frame_of_a_long_exchange_loses_nothing(void **state)
{
	uint64_t bytes[2];
	uint64_t frames[2];
	measure(&long_plan, bytes, frames);
	assert_true(frames[0] > 50 && frames[1] > 50);
	for (int side = 0; side < 2; side++) {
		for (uint64_t at = 0; at < frames[side]; at++) {
			begin(&long_plan, side, UINT64_MAX, at);
			run_to_end();
			assert_int_equal(world.cuts, 1);
			end();
		}
	}
}

/* The second channel is lost, too, after each byte until it carries something new. */
static void test_a_cut_after_every_byte_of_a_second_channel_loses_nothing(void **state)
{
	uint64_t bytes[2];
	uint64_t frames[2];
	measure(&short_plan, bytes, frames);
	for (uint64_t first = 0; first < bytes[0]; first += 263) {
		for (uint64_t second = 0; second < 600; second++) {
			int side = (int)(second % 2);
			begin(&short_plan, !side, first < bytes[!side] ? first : 0, UINT64_MAX);
			while (world.cuts == 0) {
				assert_true(act_and_carry());
			}
			world.cut_side = side;
			world.cut_bytes = second / 2;
			run_to_end();
			assert_true(world.cuts == 2 || world.carried[side] <= second / 2);
			end();
		}
	}
}

/* ---- what no honest side sends ---- */

static void assert_breaks(int side, struct runner_header header, struct span payload)
{
	struct error err = {0};
	char bytes[RUNNER_HEADER];
	header.size = payload.len;
	runner_put_header(bytes, &header);
	bool is_taken =
		mux_receive(world.ends[side].mux, (struct span){bytes, sizeof(bytes)}, 1, &err) &&
		(payload.len == 0 || mux_receive(world.ends[side].mux, payload, 1, &err));
	assert_false(is_taken);
	assert_int_equal(err.code, ERROR_PROTOCOL);
}

/* A side whose peer has only said HELLO in a second channel. */
static void restart_alone(int side, uint64_t cut)
{
	struct error err = {0};
	char hello[128];
	begin(&short_plan, 0, cut, UINT64_MAX);
	while (world.cuts == 0) {
		assert_true(act_and_carry());
	}
	const struct runner_header header = {.size = 10, .type = RUNNER_HELLO};
	size_t len = sizeof(RUNNER_MARK) - 1;
	memcpy(hello, RUNNER_MARK, len);
	runner_put_header(hello + len, &header);
	memcpy(hello + len + RUNNER_HEADER, "version=1\n", 10);
	len += RUNNER_HEADER + 10;
	assert_true(mux_receive(world.ends[side].mux, (struct span){hello, len}, 1, &err));
	assert_false(mux_is_resumed(world.ends[side].mux));
}

static void test_resumed_without_a_window_of_the_messages_breaks_the_link(void **state)
{
	restart_alone(0, 500);
	assert_breaks(
		0, (struct runner_header){.type = RUNNER_RESUMED, .number = 9}, (struct span){0});
	end();
}

static void test_resumed_in_a_first_channel_breaks_the_link(void **state)
{
	begin(&short_plan, -1, 0, 0);
	while (world.ends[0].hellos == 0) {
		assert_true(act_and_carry());
	}
	assert_breaks(0, (struct runner_header){.type = RUNNER_RESUMED}, (struct span){0});
	end();
}

static void test_a_peer_that_has_lost_what_it_had_breaks_the_link(void **state)
{
	static const char granted[8] = {0};
	restart_alone(0, 2000); // the runner has acknowledged messages by then
	assert_breaks(0, (struct runner_header){.type = RUNNER_WINDOW},
		(struct span){granted, sizeof(granted)});
	end();
}

static void test_a_peer_that_has_more_than_was_sent_breaks_the_link(void **state)
{
	static const char granted[8] = {0};
	restart_alone(0, 500);
	assert_breaks(0, (struct runner_header){.type = RUNNER_WINDOW, .number = 100000},
		(struct span){granted, sizeof(granted)});
	end();
}

static void test_nothing_but_windows_goes_before_the_peer_has_resumed(void **state)
{
	restart_alone(0, 500);
	struct span bytes = mux_output(world.ends[0].mux, world.now_us);
	size_t at = sizeof(RUNNER_MARK) - 1;
	bool has_resumed = false;
	while (at < bytes.len) {
		struct runner_header header;
		assert_true(runner_get_header(bytes.data + at, &header));
		assert_int_not_equal(header.type, RUNNER_DATA);
		has_resumed = header.type == RUNNER_RESUMED;
		at += RUNNER_HEADER + header.size;
	}
	assert_true(has_resumed); // the last one
	end();
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_cut_after_every_byte_loses_and_doubles_nothing),
		cmocka_unit_test(test_a_cut_after_every_frame_of_a_long_exchange_loses_nothing),
		cmocka_unit_test(test_a_cut_after_every_byte_of_a_second_channel_loses_nothing),
		cmocka_unit_test(test_resumed_without_a_window_of_the_messages_breaks_the_link),
		cmocka_unit_test(test_resumed_in_a_first_channel_breaks_the_link),
		cmocka_unit_test(test_a_peer_that_has_lost_what_it_had_breaks_the_link),
		cmocka_unit_test(test_a_peer_that_has_more_than_was_sent_breaks_the_link),
		cmocka_unit_test(test_nothing_but_windows_goes_before_the_peer_has_resumed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
