/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "providers/mux/mux.h"
#include "tests/fuzz/fuzz.h"

/*
 * One side of a link gets anything. The first byte says which side it is, and how long the pieces
 * are. Each side has streams in both directions with small windows, so that the amount that it can
 * be made to hold is known.
 */
enum { STREAMS = 4, WINDOW = 256, OUTPUT_MAX = 64 };

struct fuzz_side {
	struct mux *mux;
	struct mux_stream *streams[STREAMS + 1]; // by number; NULL: closed
	size_t hellos;
	size_t messages;
};

static void on_hello(void *data, struct span text, bool is_same_version)
{
	struct fuzz_side *side = data;
	side->hellos++;
	FUZZ_CHECK(side->hellos == 1);
}

static void read_words(struct span packed)
{
	const char **words = runner_words_list(packed);
	size_t size = 0;
	for (size_t i = 0; words[i]; i++) {
		size += strlen(words[i]) + 1;
	}
	FUZZ_CHECK(size == packed.len);
	free(words);
}

/* A message that was read can be written and read again. */
static void check_message(const struct runner_message *message)
{
	struct runner_message copy = *message;
	struct runner_message back;
	struct error err;
	struct buf bytes;
	if (message->kind == RUNNER_EXEC) {
		read_words(message->exec.argv.packed);
		read_words(message->exec.env.packed);
		return;
	}
	buf_init(&bytes, RUNNER_MESSAGE_MAX);
	FUZZ_CHECK(runner_message_write(&bytes, &copy, &err));
	FUZZ_CHECK(runner_message_read(buf_span(&bytes), &back, &err));
	FUZZ_CHECK(back.kind == message->kind && back.id == message->id);
	if (message->kind == RUNNER_FAILED) {
		runner_get_failure(&message->failure, &err);
		FUZZ_CHECK(err.code != ERROR_NONE);
		for (const char *at = err.text; *at; at++) {
			FUZZ_CHECK((unsigned char)*at >= 0x20 && *at != 0x7f);
		}
	}
	buf_finish(&bytes);
}

static void on_message(void *data, const struct runner_message *message)
{
	struct fuzz_side *side = data;
	FUZZ_CHECK(side->hellos == 1 && message->kind != RUNNER_RESET);
	side->messages++;
	check_message(message);
}

static void on_text(void *data, struct span text)
{
	struct fuzz_side *side = data;
	struct span value;
	FUZZ_CHECK(side->hellos == 1 && text.len <= RUNNER_PAYLOAD_MAX);
	if (runner_find_line(text, "left", &value)) {
		FUZZ_CHECK(
			value.data >= text.data && value.data + value.len <= text.data + text.len);
	}
}

static const struct mux_listener listener = {on_hello, on_message, on_text, on_text};

static void on_readable(void *data)
{
	struct mux_stream **stream = data;
	struct span bytes = mux_stream_peek(*stream);
	FUZZ_CHECK(bytes.len <= WINDOW);
	mux_stream_consume(*stream, bytes.len / 2);
}

static void on_writable(void *data)
{
	struct mux_stream **stream = data;
	FUZZ_CHECK(mux_stream_room(*stream) > 0);
	(void)mux_stream_write(*stream, SPAN_LITERAL("more"));
}

static void on_reset(void *data)
{
	struct mux_stream **stream = data;
	mux_stream_close(*stream);
	*stream = NULL;
}

static const struct mux_stream_listener stream_listener = {on_readable, on_writable, on_reset};

static void open_streams(struct fuzz_side *side)
{
	struct error err;
	char bytes[2 * WINDOW] = {0};
	for (uint32_t i = 1; i <= STREAMS; i++) {
		const struct runner_stream named = {i, WINDOW};
		side->streams[i] = mux_open(side->mux, &named, i % 2 ? MUX_IN : MUX_OUT,
			i < 3 ? MUX_AGENT : MUX_BULK, &stream_listener, &side->streams[i], &err);
		FUZZ_CHECK(side->streams[i]);
		if (i % 2 == 0) {
			FUZZ_CHECK(mux_stream_write(side->streams[i],
					   (struct span){bytes, sizeof(bytes)}) == WINDOW);
		}
	}
}

/* The output must be a sequence of frames, and must end unless somebody asks for more. */
static void take_output(struct fuzz_side *side, uint64_t now_us)
{
	struct span bytes;
	for (int i = 0; (bytes = mux_output(side->mux, now_us)).len > 0; i++) {
		FUZZ_CHECK(bytes.len <= RUNNER_FRAME_MAX && i < OUTPUT_MAX);
		mux_sent(side->mux, bytes.len);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_side side = {0};
	struct error err;
	uint64_t now_us = 1;
	if (size == 0) {
		return 0;
	}
	size_t piece = data[0] / 2 == 0 ? size : data[0] / 2;
	side.mux = mux_create(data[0] % 2 ? MUX_RUNNER : MUX_BROKER, &listener, &side, now_us);
	mux_hello(side.mux, SPAN_LITERAL("build=0\n"));
	open_streams(&side);
	for (size_t at = 1; at < size; at += piece) {
		struct span bytes = {
			(const char *)data + at, size - at < piece ? size - at : piece};
		take_output(&side, now_us);
		if (!mux_receive(side.mux, bytes, now_us, &err)) {
			FUZZ_CHECK(err.code == ERROR_PROTOCOL || err.code == ERROR_LIMIT);
			break;
		}
		now_us += 1000;
	}
	mux_destroy(side.mux);
	return 0;
}
