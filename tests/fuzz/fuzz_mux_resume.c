/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/mux/mux.h"
#include "tests/fuzz/fuzz.h"

/*
 * Sides whose channel is lost. The first byte says which of two things happens.
 *
 * Odd: one side is fed with anything, in several channels. Each begins with two bytes, how much of
 * the input is fed in it. What the side says is a sequence of frames, and no DATA comes before the
 * peer has said what it has.
 *
 * Even: two honest sides, and each byte is something that they or the channel do. At the end, each
 * stream has what was written to it.
 */
enum { WINDOW = 64, BULK = 3, SETTLE_MAX = 4000, TURNS_MAX = 64, SECOND_US = 1000000 };

static void on_text(void *data, struct span text)
{
}

static void on_hello(void *data, struct span text, bool is_same_version)
{
}

static void on_message(void *data, const struct runner_message *message)
{
	size_t *messages = data;
	++*messages;
}

static const struct mux_listener listener = {on_hello, on_message, on_text, on_text};

static void on_ready(void *data)
{
}

static void on_reset(void *data)
{
	struct mux_stream **stream = data;
	mux_stream_close(*stream);
	*stream = NULL;
}

static const struct mux_stream_listener stream_listener = {on_ready, on_ready, on_reset};

static struct mux_stream *open_stream(
	struct mux *mux, uint32_t number, enum mux_direction direction, struct mux_stream **place)
{
	struct error err;
	const struct runner_stream named = {number, WINDOW};
	struct mux_stream *stream = mux_open(mux, &named, direction,
		number < BULK ? MUX_AGENT : MUX_BULK, &stream_listener, place, &err);
	FUZZ_CHECK(stream);
	return stream;
}

/* ---- one side, and anything ---- */

static void check_output(struct mux *mux, uint64_t now_us, bool is_first)
{
	struct span bytes;
	size_t skipped = is_first ? sizeof(RUNNER_MARK) - 1 : 0;
	for (int i = 0; (bytes = mux_output(mux, now_us)).len > 0; i++) {
		FUZZ_CHECK(bytes.len <= RUNNER_FRAME_MAX && i < TURNS_MAX);
		size_t at = i == 0 ? skipped : 0;
		while (at < bytes.len) {
			struct runner_header header;
			FUZZ_CHECK(bytes.len - at >= RUNNER_HEADER);
			FUZZ_CHECK(runner_get_header(bytes.data + at, &header));
			FUZZ_CHECK(header.type != RUNNER_DATA || mux_is_resumed(mux));
			at += RUNNER_HEADER + header.size;
		}
		FUZZ_CHECK(at == bytes.len);
		mux_sent(mux, bytes.len);
	}
}

static void consume_half(struct mux_stream *stream)
{
	if (stream) {
		struct span bytes = mux_stream_peek(stream);
		FUZZ_CHECK(bytes.len <= WINDOW);
		mux_stream_consume(stream, (bytes.len + 1) / 2);
	}
}

static void feed_one(const uint8_t *data, size_t size)
{
	struct error err;
	size_t messages = 0;
	uint64_t now_us = 1;
	uint64_t number;
	static const char key[RUNNER_KEY_SIZE] = "key";
	struct mux_stream *streams[4] = {0};
	enum mux_side side = data[0] & 2 ? MUX_RUNNER : MUX_BROKER;
	struct mux *mux = mux_create(side, &listener, &messages, now_us);
	for (uint32_t i = 0; i < 4; i++) {
		streams[i] = open_stream(mux, i + 1, i % 2 ? MUX_IN : MUX_OUT, &streams[i]);
		if (i % 2 == 0) {
			(void)mux_stream_write(streams[i], SPAN_LITERAL("some bytes of a stream"));
		}
	}
	mux_hello(mux, SPAN_LITERAL("build=0\n"));
	for (size_t at = 1; at + 2 <= size;) {
		size_t len = data[at] | (size_t)data[at + 1] << 8;
		at += 2;
		len = len < size - at ? len : size - at;
		struct span bytes = {(const char *)data + at, len};
		FUZZ_CHECK(!runner_attach_check(bytes, key, SPAN_LITERAL("nonce"), &number));
		check_output(mux, now_us, true);
		if (!mux_receive(mux, bytes, now_us, &err)) {
			FUZZ_CHECK(err.code == ERROR_PROTOCOL || err.code == ERROR_LIMIT);
			break;
		}
		consume_half(streams[1]);
		consume_half(streams[3]);
		check_output(mux, now_us, false);
		at += len;
		now_us += SECOND_US;
		mux_restart(mux, now_us);
		mux_hello(mux, SPAN_LITERAL("build=0\n"));
	}
	mux_destroy(mux);
}

/* ---- two honest sides ---- */

struct way {
	struct mux_stream *from, *to;
	uint64_t written, read;
};

struct pair {
	struct mux *sides[2];
	struct way ways[2]; // to the runner, to the broker
	size_t messages[2];
	uint64_t now_us;
};

static void carry(struct pair *pair, int side, size_t most)
{
	struct error err;
	struct span bytes = mux_output(pair->sides[side], pair->now_us);
	bytes.len = bytes.len < most ? bytes.len : most;
	FUZZ_CHECK(bytes.len == 0 || mux_receive(pair->sides[!side], bytes, pair->now_us, &err));
	mux_sent(pair->sides[side], bytes.len);
}

static void write_way(struct way *way, size_t most)
{
	char bytes[WINDOW];
	most = most < sizeof(bytes) ? most : sizeof(bytes);
	for (size_t i = 0; i < most; i++) {
		bytes[i] = (char)((way->written + i) * 7);
	}
	way->written += mux_stream_write(way->from, (struct span){bytes, most});
}

static void read_way(struct way *way, size_t most)
{
	struct span bytes = mux_stream_peek(way->to);
	bytes.len = bytes.len < most ? bytes.len : most;
	for (size_t i = 0; i < bytes.len; i++) {
		FUZZ_CHECK(bytes.data[i] == (char)((way->read + i) * 7));
	}
	way->read += bytes.len;
	mux_stream_consume(way->to, bytes.len);
}

static void begin_channel(struct pair *pair)
{
	for (int i = 0; i < 2; i++) {
		mux_hello(pair->sides[i], SPAN_LITERAL("build=0\n"));
	}
}

static void act(struct pair *pair, uint8_t byte)
{
	size_t count = (size_t)byte / 8 * 4 + 1;
	int side = byte & 1;
	switch (byte / 2 % 4) {
	case 0:
		write_way(&pair->ways[side], count);
		break;
	case 1:
		carry(pair, side, count);
		break;
	case 2:
		read_way(&pair->ways[side], count);
		break;
	default:
		pair->now_us += count * SECOND_US / 8;
		if (side == 1) {
			mux_restart(pair->sides[0], pair->now_us);
			mux_restart(pair->sides[1], pair->now_us);
			begin_channel(pair);
		}
		break;
	}
}

static void drive_two(const uint8_t *data, size_t size)
{
	struct pair pair = {.now_us = 1};
	for (int i = 0; i < 2; i++) {
		pair.sides[i] = mux_create(i == 0 ? MUX_BROKER : MUX_RUNNER, &listener,
			&pair.messages[i], pair.now_us);
	}
	for (int i = 0; i < 2; i++) {
		struct way *way = &pair.ways[i];
		uint32_t number = (uint32_t)(i * 2 + 1);
		way->from = open_stream(pair.sides[i], number, MUX_OUT, &way->from);
		way->to = open_stream(pair.sides[!i], number, MUX_IN, &way->to);
	}
	begin_channel(&pair);
	for (size_t at = 1; at < size; at++) {
		act(&pair, data[at]);
	}
	for (int i = 0; i < SETTLE_MAX; i++) {
		pair.now_us += SECOND_US;
		carry(&pair, i % 2, SIZE_MAX);
		read_way(&pair.ways[i % 2], SIZE_MAX);
	}
	FUZZ_CHECK(pair.ways[0].read == pair.ways[0].written);
	FUZZ_CHECK(pair.ways[1].read == pair.ways[1].written);
	mux_destroy(pair.sides[0]);
	mux_destroy(pair.sides[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] % 2) {
		feed_one(data, size);
	} else if (size > 0) {
		drive_two(data, size);
	}
	return 0;
}
