/* SPDX-License-Identifier: MIT */
#include "providers/mux/mux.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

/*
 * Two sides with nothing between them: the test carries the bytes, and also makes bytes that no
 * real side would send.
 */
struct side {
	struct mux *mux;
	struct runner_message last; // its texts are gone
	size_t messages;
	char hello[256];
	char end[256];
	char status[256];
	bool is_same_version;
	bool destroys; // itself, at the next message
};

struct pair {
	struct side broker;
	struct side runner;
	uint64_t now_us;
};

struct end_of_stream {
	struct mux_stream *stream;
	size_t readable, writable, resets; // events
};

static void put_text(char *out, struct span text)
{
	snprintf(out, 256, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct side *side = data;
	put_text(side->hello, text);
	side->is_same_version = is_same_version;
}

static void on_message(void *data, const struct runner_message *message)
{
	struct side *side = data;
	side->last = *message;
	side->messages++;
	if (side->destroys) {
		mux_destroy(side->mux);
		side->mux = NULL;
	}
}

static void on_end(void *data, struct span text)
{
	put_text(((struct side *)data)->end, text);
}

static void on_status(void *data, struct span text)
{
	put_text(((struct side *)data)->status, text);
}

static const struct mux_listener listener = {on_hello, on_message, on_end, on_status};

static void on_readable(void *data)
{
	((struct end_of_stream *)data)->readable++;
}

static void on_writable(void *data)
{
	((struct end_of_stream *)data)->writable++;
}

static void on_reset(void *data)
{
	((struct end_of_stream *)data)->resets++;
}

static const struct mux_stream_listener stream_listener = {on_readable, on_writable, on_reset};

/* ---- carrying ---- */

static size_t carry_once(struct pair *pair, struct side *from, struct side *to)
{
	struct error err = {0};
	struct span bytes = mux_output(from->mux, pair->now_us);
	if (bytes.len > 0 && to->mux && !mux_receive(to->mux, bytes, pair->now_us, &err)) {
		fail_msg("%s", err.text);
	}
	mux_sent(from->mux, bytes.len);
	return bytes.len;
}

static void carry(struct pair *pair)
{
	size_t moved;
	do {
		moved = carry_once(pair, &pair->broker, &pair->runner);
		moved += pair->runner.mux ? carry_once(pair, &pair->runner, &pair->broker) : 0;
	} while (moved > 0 && pair->runner.mux);
}

static int set_up(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	pair->now_us = 1000000;
	pair->broker.mux = mux_create(MUX_BROKER, &listener, &pair->broker, pair->now_us);
	pair->runner.mux = mux_create(MUX_RUNNER, &listener, &pair->runner, pair->now_us);
	mux_hello(pair->broker.mux, SPAN_LITERAL("grace-ms=5\n"));
	mux_hello(pair->runner.mux, SPAN_LITERAL("build=abc\n"));
	*state = pair;
	return 0;
}

static int tear_down(void **state)
{
	struct pair *pair = *state;
	mux_destroy(pair->broker.mux);
	mux_destroy(pair->runner.mux);
	free(pair);
	return 0;
}

/* A stream from the runner to the broker. */
static void open_stream(struct pair *pair, uint64_t window, enum mux_class class,
	struct end_of_stream *to, struct end_of_stream *from)
{
	struct error err;
	const struct runner_stream named = {mux_next_stream(pair->broker.mux), window};
	*to = *from = (struct end_of_stream){0};
	to->stream = mux_open(pair->broker.mux, &named, MUX_IN, class, &stream_listener, to, &err);
	from->stream =
		mux_open(pair->runner.mux, &named, MUX_OUT, class, &stream_listener, from, &err);
	assert_true(to->stream && from->stream);
}

/* Bytes for the broker as a runner could make them. Before the first, its mark and hello. */
static bool inject_with(
	struct pair *pair, struct runner_header header, struct span payload, struct error *err)
{
	char bytes[RUNNER_HEADER];
	header.size = payload.len;
	if (!pair->broker.hello[0]) {
		carry(pair);
	}
	runner_put_header(bytes, &header);
	*err = (struct error){0};
	return mux_receive(
		       pair->broker.mux, (struct span){bytes, sizeof(bytes)}, pair->now_us, err) &&
	       (payload.len == 0 || mux_receive(pair->broker.mux, payload, pair->now_us, err));
}

static void assert_breaks(struct pair *pair, struct runner_header header, struct span payload)
{
	struct error err;
	assert_false(inject_with(pair, header, payload, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
}

static void assert_taken(struct pair *pair, struct runner_header header, struct span payload)
{
	struct error err;
	if (!inject_with(pair, header, payload, &err)) {
		fail_msg("%s", err.text);
	}
}

/* ---- hello, end, status ---- */

static void test_hello_comes_first_and_once(void **state)
{
	struct pair *pair = *state;
	carry(pair);
	assert_string_equal(pair->broker.hello, "version=1\nbuild=abc\n");
	assert_string_equal(pair->runner.hello, "version=1\ngrace-ms=5\n");
	assert_true(pair->broker.is_same_version && pair->runner.is_same_version);
	assert_breaks(
		pair, (struct runner_header){.type = RUNNER_HELLO}, SPAN_LITERAL("version=1\n"));
}

static void test_banner_before_the_mark_is_dropped(void **state)
{
	struct pair *pair = *state;
	struct error err;
	static const char banner[] = "Welcome\n\n\x1e"
				     "acp-runner linx\n\n\x1e"
				     "acp-\n";
	assert_true(mux_receive(
		pair->broker.mux, (struct span){banner, sizeof(banner) - 1}, pair->now_us, &err));
	carry(pair);
	assert_string_equal(pair->broker.hello, "version=1\nbuild=abc\n");
}

static void test_endless_banner_is_given_up(void **state)
{
	struct pair *pair = *state;
	struct error err;
	char *banner = calloc(1, RUNNER_BANNER_MAX + 1);
	assert_false(mux_receive(pair->broker.mux, (struct span){banner, RUNNER_BANNER_MAX + 1},
		pair->now_us, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
	free(banner);
}

static void test_end_and_status_go_to_another_version_too(void **state)
{
	struct pair *pair = *state;
	struct error err;
	struct side *broker = &pair->broker;
	char bytes[RUNNER_HEADER];
	static const char hello[] = "version=2\nnew=1\n";
	assert_true(mux_receive(broker->mux, SPAN_LITERAL(RUNNER_MARK), pair->now_us, &err));
	runner_put_header(
		bytes, &(struct runner_header){.type = RUNNER_HELLO, .size = sizeof(hello) - 1});
	assert_true(
		mux_receive(broker->mux, (struct span){bytes, sizeof(bytes)}, pair->now_us, &err));
	assert_true(mux_receive(broker->mux, SPAN_LITERAL(hello), pair->now_us, &err));
	assert_false(broker->is_same_version);
	runner_put_header(bytes, &(struct runner_header){.type = 77, .stream = 5, .number = 9});
	assert_true(
		mux_receive(broker->mux, (struct span){bytes, sizeof(bytes)}, pair->now_us, &err));
	assert_true(mux_send(
		broker->mux, &(struct runner_message){.kind = RUNNER_KILL, .id = 1}, &err));
	mux_end(broker->mux, SPAN_LITERAL("why=old\n"));
	while (carry_once(pair, broker, &pair->runner) > 0) {
	}
	assert_string_equal(pair->runner.end, "why=old\n");
	assert_int_equal(pair->runner.messages, 0);
}

static void test_status_is_asked_and_answered(void **state)
{
	struct pair *pair = *state;
	mux_status(pair->broker.mux, SPAN_LITERAL(""));
	carry(pair);
	mux_status(pair->runner.mux, SPAN_LITERAL("runs=0\n"));
	carry(pair);
	assert_string_equal(pair->broker.status, "runs=0\n");
}

/* ---- messages ---- */

static void test_message_may_take_many_frames(void **state)
{
	struct pair *pair = *state;
	struct error err;
	char *word = malloc(1 << 20);
	memset(word, 'x', (1 << 20) - 1);
	word[(1 << 20) - 1] = '\0';
	const char *const argv[] = {word, NULL};
	const struct runner_message message = {
		.kind = RUNNER_EXEC, .id = 7, .exec = {.argv = {.list = argv}}};
	assert_true(mux_send(pair->broker.mux, &message, &err));
	carry(pair);
	assert_int_equal(pair->runner.messages, 1);
	assert_int_equal(pair->runner.last.exec.argv.packed.len, 1 << 20);
	free(word);
}

static void test_too_large_message_is_refused(void **state)
{
	struct pair *pair = *state;
	struct error err;
	char *text = calloc(1, RUNNER_REPORT_MAX + 1);
	const struct runner_message message = {
		.kind = RUNNER_PATH, .file = {.path = {text, RUNNER_REPORT_MAX}}};
	assert_false(mux_send(pair->runner.mux, &message, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	uint32_t size = htole32(RUNNER_REPORT_MAX + 1);
	assert_breaks(pair, (struct runner_header){.type = RUNNER_DATA},
		(struct span){(char *)&size, sizeof(size)});
	free(text);
}

static void test_messages_that_nobody_takes_have_a_limit(void **state)
{
	enum { SIZE = 60000 };
	struct pair *pair = *state;
	struct error err = {0};
	char *text = calloc(1, SIZE);
	const struct runner_message message = {
		.kind = RUNNER_PATH, .id = 1, .file = {.path = {text, SIZE}}};
	size_t count = 0;
	while (mux_send(pair->runner.mux, &message, &err)) {
		count++;
	}
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_true(count > 0 && count * SIZE <= MUX_CONTROL_MAX);
	free(text);
}

static void test_handler_may_destroy(void **state)
{
	struct pair *pair = *state;
	struct error err;
	const struct runner_message message = {.kind = RUNNER_KILL, .id = 1};
	pair->runner.destroys = true;
	assert_true(mux_send(pair->broker.mux, &message, &err));
	assert_true(mux_send(pair->broker.mux, &message, &err));
	carry(pair);
	assert_int_equal(pair->runner.messages, 1);
	assert_null(pair->runner.mux);
}

/* ---- streams ---- */

static void test_bytes_and_the_end_arrive(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	open_stream(pair, 100, MUX_AGENT, &to, &from);
	assert_int_equal(mux_stream_write(from.stream, SPAN_LITERAL("hello")), 5);
	carry(pair);
	assert_true(span_is(mux_stream_peek(to.stream), "hello"));
	mux_stream_consume(to.stream, 2);
	mux_stream_finish(from.stream);
	carry(pair);
	assert_true(span_is(mux_stream_peek(to.stream), "llo"));
	assert_false(mux_stream_is_over(to.stream));
	mux_stream_consume(to.stream, 3);
	assert_true(mux_stream_is_over(to.stream));
	mux_stream_close(to.stream);
	carry(pair);
	assert_int_equal(to.resets + from.resets, 0);
}

/* At most this many bytes are under way, wherever they wait; then the producer has to wait. */
static void test_window_holds_the_producer_back(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	char bytes[1000] = {0};
	open_stream(pair, 1000, MUX_AGENT, &to, &from);
	assert_int_equal(mux_stream_write(from.stream, (struct span){bytes, 1000}), 1000);
	assert_int_equal(mux_stream_room(from.stream), 0);
	carry(pair);
	size_t taken = mux_stream_write(from.stream, (struct span){bytes, 1000});
	carry(pair);
	assert_int_equal(mux_stream_peek(to.stream).len, 1000);
	assert_int_equal(taken + mux_stream_write(from.stream, (struct span){bytes, 1000}), 1000);
	carry(pair);
	assert_int_equal(mux_stream_peek(to.stream).len, 1000);
	assert_int_equal(mux_stream_write(from.stream, (struct span){bytes, 1}), 0);
	size_t before = from.writable;
	mux_stream_consume(to.stream, 1000);
	carry(pair);
	assert_int_equal(mux_stream_peek(to.stream).len, 1000);
	assert_true(from.writable > before);
}

static void test_full_stream_blocks_no_other(void **state)
{
	struct pair *pair = *state;
	struct error err;
	struct end_of_stream to[2];
	struct end_of_stream from[2];
	char bytes[1000] = {0};
	open_stream(pair, 1000, MUX_AGENT, &to[0], &from[0]);
	open_stream(pair, 1000, MUX_BULK, &to[1], &from[1]);
	(void)mux_stream_write(from[0].stream, (struct span){bytes, 1000});
	carry(pair);
	(void)mux_stream_write(from[0].stream, (struct span){bytes, 1000});
	(void)mux_stream_write(from[1].stream, SPAN_LITERAL("through"));
	assert_true(
		mux_send(pair->runner.mux, &(struct runner_message){.kind = RUNNER_EMPTIED}, &err));
	carry(pair);
	assert_int_equal(mux_stream_peek(to[0].stream).len, 1000);
	assert_true(span_is(mux_stream_peek(to[1].stream), "through"));
	assert_int_equal(pair->broker.messages, 1);
}

static void test_reader_that_gives_up_is_told(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	open_stream(pair, 100, MUX_AGENT, &to, &from);
	(void)mux_stream_write(from.stream, SPAN_LITERAL("one"));
	carry(pair);
	(void)mux_stream_write(from.stream, SPAN_LITERAL("two"));
	mux_stream_close(to.stream);
	carry(pair);
	assert_int_equal(from.resets, 1);
	assert_int_equal(mux_stream_write(from.stream, SPAN_LITERAL("three")), 0);
	mux_stream_close(from.stream);
	carry(pair);
}

static void test_writer_that_gives_up_is_told(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	open_stream(pair, 100, MUX_AGENT, &to, &from);
	(void)mux_stream_write(from.stream, SPAN_LITERAL("one"));
	mux_stream_close(from.stream);
	carry(pair);
	assert_int_equal(to.resets, 1);
	assert_false(mux_stream_is_over(to.stream));
	mux_stream_close(to.stream);
	carry(pair);
}

static void test_refused_stream_is_told_and_its_bytes_dropped(void **state)
{
	struct pair *pair = *state;
	struct error err;
	struct end_of_stream from = {0};
	const struct runner_stream named = {1, 100};
	from.stream = mux_open(
		pair->broker.mux, &named, MUX_OUT, MUX_AGENT, &stream_listener, &from, &err);
	(void)mux_stream_write(from.stream, SPAN_LITERAL("bytes"));
	mux_refuse(pair->runner.mux, &named);
	carry(pair);
	assert_int_equal(from.resets, 1);
	mux_stream_close(from.stream);
}

static void test_stream_needs_a_new_number_and_a_window(void **state)
{
	struct pair *pair = *state;
	struct error err;
	static const struct runner_stream wrong[] = {
		{0, 1}, {1, 0}, {1, (uint64_t)MUX_WINDOW_MAX + 1}};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		assert_null(mux_open(pair->runner.mux, &wrong[i], MUX_IN, MUX_AGENT,
			&stream_listener, NULL, &err));
		assert_int_equal(err.code, ERROR_PROTOCOL);
	}
	const struct runner_stream named = {5, 1};
	const struct runner_stream older = {4, 1};
	assert_non_null(mux_open(
		pair->runner.mux, &named, MUX_IN, MUX_AGENT, &stream_listener, NULL, &err));
	assert_null(mux_open(
		pair->runner.mux, &older, MUX_IN, MUX_AGENT, &stream_listener, NULL, &err));
}

static void test_streams_have_a_limit(void **state)
{
	struct pair *pair = *state;
	struct error err = {0};
	struct end_of_stream to = {0};
	for (uint32_t i = 1; i <= MUX_STREAMS_MAX; i++) {
		const struct runner_stream named = {i, 1};
		assert_non_null(mux_open(
			pair->runner.mux, &named, MUX_IN, MUX_AGENT, &stream_listener, &to, &err));
	}
	const struct runner_stream more = {MUX_STREAMS_MAX + 1, 1};
	assert_null(
		mux_open(pair->runner.mux, &more, MUX_IN, MUX_AGENT, &stream_listener, &to, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

/* ---- what a hostile runner sends ---- */

static void test_bytes_over_the_window_break_the_link(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	open_stream(pair, 4, MUX_AGENT, &to, &from);
	const struct runner_header header = {.type = RUNNER_DATA, .stream = 1};
	assert_taken(pair, header, SPAN_LITERAL("1234"));
	assert_breaks(pair, (struct runner_header){.type = RUNNER_DATA, .stream = 1, .number = 4},
		SPAN_LITERAL("5"));
}

static void test_gap_breaks_the_link_and_repetition_does_not(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	struct runner_header header = {.type = RUNNER_DATA, .stream = 1};
	open_stream(pair, 100, MUX_AGENT, &to, &from);
	assert_taken(pair, header, SPAN_LITERAL("abc"));
	assert_taken(pair, header, SPAN_LITERAL("abcde"));
	assert_taken(pair, header, SPAN_LITERAL("ab"));
	assert_true(span_is(mux_stream_peek(to.stream), "abcde"));
	header.number = 6;
	assert_breaks(pair, header, SPAN_LITERAL("g"));
}

static void test_bytes_after_the_end_break_the_link(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	open_stream(pair, 100, MUX_AGENT, &to, &from);
	assert_taken(pair,
		(struct runner_header){.type = RUNNER_DATA, .stream = 1, .flags = RUNNER_FIN},
		SPAN_LITERAL("abc"));
	assert_breaks(pair, (struct runner_header){.type = RUNNER_DATA, .stream = 1, .number = 3},
		SPAN_LITERAL("d"));
}

static void test_unknown_streams_types_and_directions_break_the_link(void **state)
{
	struct error err;
	static const struct runner_header wrong[] = {
		{.type = RUNNER_DATA, .stream = 9}, {.type = RUNNER_WINDOW, .stream = 9},
		{.type = 99}, {.type = RUNNER_DATA, .stream = 1},  // goes out
		{.type = RUNNER_WINDOW, .stream = 1, .number = 1}, // more than was sent
		{.type = RUNNER_WINDOW, .stream = 1, .flags = RUNNER_FIN},
		{.type = RUNNER_WINDOW, .stream = 0, .number = 100}, // so many were not sent
	};
	for (size_t i = 0; i < ARRAY_LENGTH(wrong); i++) {
		void *state_of_one = NULL;
		set_up(&state_of_one);
		struct pair *pair = state_of_one;
		const struct runner_stream named = {1, 100};
		assert_non_null(mux_open(pair->broker.mux, &named, MUX_OUT, MUX_AGENT,
			&stream_listener, NULL, &err));
		assert_breaks(pair, wrong[i], SPAN_LITERAL("12345678"));
		tear_down(&state_of_one);
	}
}

static void test_too_large_frame_breaks_the_link(void **state)
{
	struct pair *pair = *state;
	struct error err;
	char bytes[RUNNER_HEADER];
	carry(pair);
	runner_put_header(bytes,
		&(struct runner_header){.type = RUNNER_PING, .size = RUNNER_PAYLOAD_MAX + 1});
	assert_false(mux_receive(
		pair->broker.mux, (struct span){bytes, sizeof(bytes)}, pair->now_us, &err));
	assert_int_equal(err.code, ERROR_PROTOCOL);
}

static void test_message_of_unknown_kind_breaks_the_link(void **state)
{
	static const char message[] = "\x09\0\0\0\xc8"
				      "12345678";
	assert_breaks(*state, (struct runner_header){.type = RUNNER_DATA},
		(struct span){message, sizeof(message) - 1});
}

/* One pong at a time answers any number of pings, so that memory does not grow. */
static void test_flood_of_pings_holds_no_memory(void **state)
{
	struct pair *pair = *state;
	for (uint64_t i = 0; i < 10000; i++) {
		char bytes[RUNNER_HEADER];
		struct error err;
		if (i == 0) {
			carry(pair);
		}
		runner_put_header(bytes, &(struct runner_header){.type = RUNNER_PING, .number = i});
		assert_true(mux_receive(
			pair->broker.mux, (struct span){bytes, sizeof(bytes)}, pair->now_us, &err));
	}
	assert_int_equal(mux_output(pair->broker.mux, pair->now_us).len, RUNNER_HEADER);
}

/* ---- order and flow ---- */

/* The next frames of the runner's, decoded. */
static size_t next_frames(struct pair *pair, struct runner_header *out, size_t most)
{
	struct span bytes = mux_output(pair->runner.mux, pair->now_us);
	size_t count = 0;
	size_t at = 0;
	assert_true(bytes.len <= RUNNER_FRAME_MAX);
	while (at + RUNNER_HEADER <= bytes.len && count < most) {
		assert_true(runner_get_header(bytes.data + at, &out[count]));
		at += RUNNER_HEADER + out[count++].size;
	}
	mux_sent(pair->runner.mux, bytes.len);
	return count;
}

static void test_messages_and_the_agent_go_before_bulk(void **state)
{
	struct pair *pair = *state;
	struct error err;
	struct end_of_stream to[2];
	struct end_of_stream from[2];
	struct runner_header frames[8];
	char *bytes = calloc(1, 1 << 20);
	open_stream(pair, 1 << 20, MUX_BULK, &to[0], &from[0]);
	open_stream(pair, 1 << 20, MUX_AGENT, &to[1], &from[1]);
	carry(pair);
	(void)mux_stream_write(from[0].stream, (struct span){bytes, 1 << 20});
	assert_int_equal(next_frames(pair, frames, 8), 1);
	assert_int_equal(frames[0].stream, 1);
	(void)mux_stream_write(from[1].stream, SPAN_LITERAL("agent"));
	assert_true(
		mux_send(pair->runner.mux, &(struct runner_message){.kind = RUNNER_EMPTIED}, &err));
	assert_true(next_frames(pair, frames, 8) >= 2);
	assert_int_equal(frames[0].stream, RUNNER_CONTROL_STREAM);
	assert_int_equal(frames[1].stream, 2);
	free(bytes);
}

static void test_streams_of_a_class_take_turns(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to[3];
	struct end_of_stream from[3];
	struct runner_header frame;
	char *bytes = calloc(1, 1 << 18);
	for (int i = 0; i < 3; i++) {
		open_stream(pair, 1 << 18, MUX_AGENT, &to[i], &from[i]);
		(void)mux_stream_write(from[i].stream, (struct span){bytes, 1 << 18});
	}
	(void)mux_output(pair->runner.mux, pair->now_us); // mark, hello, ping, and a first one
	carry_once(pair, &pair->runner, &pair->broker);
	uint32_t before = 0;
	for (int i = 0; i < 9; i++) {
		assert_true(next_frames(pair, &frame, 1) == 1);
		assert_int_equal(frame.type, RUNNER_DATA);
		assert_true(frame.stream != before);
		before = frame.stream;
	}
	free(bytes);
}

/* How many bytes of bulk the runner has under way after it has written all that it may. */
static size_t bulk_under_way(struct pair *pair)
{
	struct runner_header frames[4];
	size_t sum = 0;
	size_t count;
	while ((count = next_frames(pair, frames, 4)) > 0) {
		for (size_t i = 0; i < count; i++) {
			sum += frames[i].type == RUNNER_DATA ? frames[i].size : 0;
		}
	}
	return sum;
}

static void test_bulk_under_way_has_a_limit_and_the_agent_none(void **state)
{
	struct pair *pair = *state;
	struct end_of_stream to[2];
	struct end_of_stream from[2];
	char *bytes = calloc(1, 1 << 20);
	open_stream(pair, 1 << 20, MUX_BULK, &to[0], &from[0]);
	open_stream(pair, 1 << 20, MUX_AGENT, &to[1], &from[1]);
	carry(pair);
	(void)mux_stream_write(from[0].stream, (struct span){bytes, 1 << 20});
	assert_in_range(bulk_under_way(pair), MUX_BULK_MIN / 2, MUX_BULK_MIN);
	(void)mux_stream_write(from[1].stream, (struct span){bytes, 1 << 20});
	assert_int_equal(bulk_under_way(pair), 1 << 20);
	free(bytes);
}

/*
 * A connection of 1.25 MB/s and 50 ms, as a queue. Bulk settles at the amount that keeps it busy,
 * and waits in the queue for the slack at most.
 */
static void test_bulk_keeps_the_connection_busy_and_the_queue_short(void **state)
{
	enum { STEP_US = 1000, DELAY = 25, STEPS = 5000, PER_STEP = 1250 };
	struct pair *pair = *state;
	struct end_of_stream to;
	struct end_of_stream from;
	struct error err;
	static char there[DELAY][PER_STEP];
	static char back[DELAY][RUNNER_FRAME_MAX];
	size_t there_len[DELAY] = {0};
	size_t back_len[DELAY] = {0};
	struct buf queue;
	size_t longest = 0;
	size_t arrived = 0;
	char *bytes = calloc(1, 4 << 20);
	buf_init(&queue, 64 << 20);
	open_stream(pair, 4 << 20, MUX_BULK, &to, &from);
	for (int step = 0; step < STEPS; step++) {
		int at = step % DELAY;
		struct span span;
		pair->now_us += STEP_US;
		(void)mux_stream_write(from.stream, (struct span){bytes, 4 << 20});
		while ((span = mux_output(pair->runner.mux, pair->now_us)).len > 0) {
			assert_true(buf_append(&queue, span, &err));
			mux_sent(pair->runner.mux, span.len);
		}
		longest = step > STEPS / 2 && queue.len > longest ? queue.len : longest;
		assert_true(mux_receive(pair->broker.mux, (struct span){there[at], there_len[at]},
			pair->now_us, &err));
		there_len[at] = queue.len < PER_STEP ? queue.len : PER_STEP;
		memcpy(there[at], buf_span(&queue).data, there_len[at]);
		buf_consume(&queue, there_len[at]);
		arrived += step > STEPS / 2 ? mux_stream_peek(to.stream).len : 0;
		mux_stream_consume(to.stream, mux_stream_peek(to.stream).len);
		assert_true(mux_receive(pair->runner.mux, (struct span){back[at], back_len[at]},
			pair->now_us, &err));
		span = mux_output(pair->broker.mux, pair->now_us);
		back_len[at] = span.len;
		memcpy(back[at], span.data, span.len);
		mux_sent(pair->broker.mux, span.len);
	}
	/* The queue holds at most the slack of 50 ms and the step between acknowledgements. */
	assert_in_range(longest, 1, PER_STEP * 50 + 3 * RUNNER_FRAME_MAX);
	assert_true(arrived > (size_t)PER_STEP * (STEPS / 2) * 9 / 10);
	assert_in_range(mux_round_trip_us(pair->runner.mux), 50000, 60000);
	buf_finish(&queue);
	free(bytes);
}

static void test_heartbeat_comes_when_due(void **state)
{
	struct pair *pair = *state;
	carry(pair);
	uint64_t heard_us = mux_heard_us(pair->broker.mux);
	assert_int_equal(mux_output(pair->runner.mux, pair->now_us).len, 0);
	assert_int_equal(mux_due_us(pair->runner.mux), pair->now_us + MUX_PING_US);
	pair->now_us = mux_due_us(pair->runner.mux);
	assert_true(carry_once(pair, &pair->runner, &pair->broker) > 0);
	assert_true(mux_heard_us(pair->broker.mux) > heard_us);
}

static void test_heartbeats_come_more_often_for_an_impatient_peer(void **state)
{
	static const uint64_t second_us = 1000000;
	struct pair *pair = *state;
	carry(pair);
	mux_set_patience(pair->broker.mux, second_us);
	assert_true(carry_once(pair, &pair->broker, &pair->runner) > 0);
	assert_int_equal(mux_due_us(pair->broker.mux), pair->now_us + second_us / 4);
	mux_set_patience(pair->broker.mux, 3600 * second_us);
	pair->now_us = mux_due_us(pair->broker.mux);
	assert_true(carry_once(pair, &pair->broker, &pair->runner) > 0);
	assert_int_equal(mux_due_us(pair->broker.mux), pair->now_us + MUX_PING_US);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		CASE(test_hello_comes_first_and_once),
		CASE(test_banner_before_the_mark_is_dropped),
		CASE(test_endless_banner_is_given_up),
		CASE(test_end_and_status_go_to_another_version_too),
		CASE(test_status_is_asked_and_answered),
		CASE(test_message_may_take_many_frames),
		CASE(test_too_large_message_is_refused),
		CASE(test_messages_that_nobody_takes_have_a_limit),
		CASE(test_handler_may_destroy),
		CASE(test_bytes_and_the_end_arrive),
		CASE(test_window_holds_the_producer_back),
		CASE(test_full_stream_blocks_no_other),
		CASE(test_reader_that_gives_up_is_told),
		CASE(test_writer_that_gives_up_is_told),
		CASE(test_refused_stream_is_told_and_its_bytes_dropped),
		CASE(test_stream_needs_a_new_number_and_a_window),
		CASE(test_streams_have_a_limit),
		CASE(test_bytes_over_the_window_break_the_link),
		CASE(test_gap_breaks_the_link_and_repetition_does_not),
		CASE(test_bytes_after_the_end_break_the_link),
		CASE(test_unknown_streams_types_and_directions_break_the_link),
		CASE(test_too_large_frame_breaks_the_link),
		CASE(test_message_of_unknown_kind_breaks_the_link),
		CASE(test_flood_of_pings_holds_no_memory),
		CASE(test_messages_and_the_agent_go_before_bulk),
		CASE(test_streams_of_a_class_take_turns),
		CASE(test_bulk_under_way_has_a_limit_and_the_agent_none),
		CASE(test_bulk_keeps_the_connection_busy_and_the_queue_short),
		CASE(test_heartbeat_comes_when_due),
		CASE(test_heartbeats_come_more_often_for_an_impatient_peer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
