/* SPDX-License-Identifier: MIT */
#include "providers/mux/mux.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "providers/mux/mux_impl.h"

/* One of them may be late, and another one under way. */
enum { PINGS_IN_PATIENCE = 4 };

/* ---- life ---- */

static struct mux_stream *stream_create(struct mux *mux, const struct runner_stream *stream,
	enum mux_direction direction, enum mux_class class)
{
	struct mux_stream *created = mem_alloc_zero(sizeof(*created));
	created->mux = mux;
	created->number = stream->stream;
	created->direction = direction;
	created->class = class;
	created->window = stream->window;
	created->may_send = created->granted = created->granted_told = stream->window;
	buf_init(&created->bytes, stream->window);
	list_init(&created->ready);
	list_init(&created->due);
	return created;
}

static void stream_free(struct mux_stream *stream)
{
	if (stream->class == MUX_BULK && stream->direction == MUX_OUT) {
		mux_flow_forget(&stream->mux->flow, stream->sent - stream->begin);
	}
	list_remove(&stream->ready);
	list_remove(&stream->due);
	buf_finish(&stream->bytes);
	free(stream);
}

struct mux *mux_create(
	enum mux_side side, const struct mux_listener *listener, void *data, uint64_t now_us)
{
	const struct runner_stream control = {RUNNER_CONTROL_STREAM, MUX_CONTROL_MAX};
	struct mux *mux = mem_alloc_zero(sizeof(*mux));
	mux->side = side;
	mux->listener = listener;
	mux->data = data;
	mux->heard_us = mux->ping_us = now_us;
	mux->ping_every_us = MUX_PING_US;
	for (size_t i = 0; i < ARRAY_LENGTH(mux->ready); i++) {
		list_init(&mux->ready[i]);
	}
	list_init(&mux->due);
	mux->control_in = stream_create(mux, &control, MUX_IN, MUX_AGENT);
	mux->control_out = stream_create(mux, &control, MUX_OUT, MUX_AGENT);
	buf_init(&mux->input, RUNNER_FRAME_MAX);
	buf_init(&mux->stage, RUNNER_FRAME_MAX);
	for (size_t i = 0; i < ARRAY_LENGTH(mux->texts); i++) {
		buf_init(&mux->texts[i].text, RUNNER_TEXT_MAX);
	}
	return mux;
}

void mux_free(struct mux *mux)
{
	for (size_t i = 0; i < mux->stream_count; i++) {
		stream_free(mux->streams[i]);
	}
	free(mux->streams);
	stream_free(mux->control_in);
	stream_free(mux->control_out);
	buf_finish(&mux->input);
	buf_finish(&mux->stage);
	for (size_t i = 0; i < ARRAY_LENGTH(mux->texts); i++) {
		buf_finish(&mux->texts[i].text);
	}
	free(mux);
}

void mux_destroy(struct mux *mux)
{
	if (mux && mux->depth > 0) {
		mux->is_doomed = true;
	} else if (mux) {
		mux_free(mux);
	}
}

uint64_t mux_due_us(const struct mux *mux)
{
	return mux->ping_us;
}

void mux_set_patience(struct mux *mux, uint64_t patience_us)
{
	uint64_t every_us = patience_us > 0 ? patience_us / PINGS_IN_PATIENCE : MUX_PING_US;
	every_us = every_us < MUX_PING_US ? every_us : MUX_PING_US;
	if (every_us < mux->ping_every_us) {
		mux_ping(mux);
	}
	mux->ping_every_us = every_us;
}

void mux_ping(struct mux *mux)
{
	mux->ping_us = 0;
}

uint64_t mux_heard_us(const struct mux *mux)
{
	return mux->heard_us;
}

uint64_t mux_round_trip_us(const struct mux *mux)
{
	return mux->flow.round_trip_us;
}

/* ---- streams ---- */

/*
 * The index of the stream, or where it would be inserted. Numbers only grow, so the array is
 * sorted.
 */
static size_t stream_index(const struct mux *mux, uint32_t number)
{
	size_t from = 0;
	size_t to = mux->stream_count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (mux->streams[middle]->number < number) {
			from = middle + 1;
		} else {
			to = middle;
		}
	}
	return from;
}

struct mux_stream *mux_stream_find(const struct mux *mux, uint32_t number)
{
	size_t index = stream_index(mux, number);
	bool is_there = index < mux->stream_count && mux->streams[index]->number == number;
	return is_there ? mux->streams[index] : NULL;
}

void mux_stream_remove(struct mux_stream *stream)
{
	struct mux *mux = stream->mux;
	size_t index = stream_index(mux, stream->number);
	assert(index < mux->stream_count && mux->streams[index] == stream);
	mux->stream_count--;
	memmove(mux->streams + index, mux->streams + index + 1,
		(mux->stream_count - index) * sizeof(struct mux_stream *));
	stream_free(stream);
}

uint32_t mux_next_stream(const struct mux *mux)
{
	return mux->last_stream + 1;
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters */
struct mux_stream *mux_open(struct mux *mux, const struct runner_stream *stream,
	enum mux_direction direction, enum mux_class class,
	const struct mux_stream_listener *listener, void *data, struct error *err)
{
	if (stream->stream <= mux->last_stream || stream->window == 0 ||
		stream->window > MUX_WINDOW_MAX) {
		error_set(err, ERROR_PROTOCOL,
			"cannot open stream %u: it is not new, or its window is invalid",
			(unsigned)stream->stream);
		return NULL;
	}
	if (mux->stream_count == MUX_STREAMS_MAX) {
		error_set(err, ERROR_LIMIT, "more than %d streams are open", MUX_STREAMS_MAX);
		return NULL;
	}
	if (mux->stream_count == mux->stream_capacity) {
		mux->stream_capacity = mux->stream_capacity ? mux->stream_capacity * 2 : 16;
		mux->streams = mem_realloc(
			mux->streams, mux->stream_capacity * sizeof(struct mux_stream *));
	}
	struct mux_stream *opened = stream_create(mux, stream, direction, class);
	opened->listener = listener;
	opened->data = data;
	mux->last_stream = stream->stream;
	mux->streams[mux->stream_count++] = opened;
	return opened;
}

static bool has_unsent(const struct mux_stream *stream)
{
	uint64_t end = stream->begin + stream->bytes.len;
	uint64_t until = end < stream->may_send ? end : stream->may_send;
	return stream->sent < until ||
	       (stream->is_finished && !stream->is_end_sent && stream->sent == end);
}

void mux_note_ready(struct mux_stream *stream)
{
	bool is_ready = has_unsent(stream);
	if (is_ready && list_is_empty(&stream->ready)) {
		list_append(&stream->mux->ready[stream->class], &stream->ready);
	} else if (!is_ready) {
		list_remove(&stream->ready);
	}
}

size_t mux_stream_room(const struct mux_stream *stream)
{
	return stream->is_reset || stream->is_finished ? 0 : stream->window - stream->bytes.len;
}

size_t mux_stream_write(struct mux_stream *stream, struct span bytes)
{
	assert(stream->direction == MUX_OUT);
	size_t room = mux_stream_room(stream);
	stream->wants_room = bytes.len > room;
	bytes.len = bytes.len < room ? bytes.len : room;
	if (bytes.len > 0) {
		buf_add(&stream->bytes, bytes);
		mux_note_ready(stream);
	}
	return bytes.len;
}

void mux_stream_finish(struct mux_stream *stream)
{
	assert(stream->direction == MUX_OUT);
	stream->listener = NULL;
	stream->is_finished = true;
	if (stream->is_reset) {
		mux_stream_remove(stream);
	} else {
		mux_note_ready(stream);
	}
}

struct span mux_stream_peek(const struct mux_stream *stream)
{
	return buf_span(&stream->bytes);
}

bool mux_stream_is_over(const struct mux_stream *stream)
{
	return stream->has_ended && stream->bytes.len == 0;
}

/* How much may change before the sender is notified. */
static uint64_t told_every(const struct mux_stream *stream)
{
	uint64_t quarter = stream->window / 4;
	if (stream == stream->mux->control_in && stream->mux->is_prompt) {
		return 1;
	}
	return quarter < 1 ? 1 : quarter < MUX_TOLD_EVERY ? quarter : MUX_TOLD_EVERY;
}

void mux_note_window(struct mux_stream *stream)
{
	uint64_t every = told_every(stream);
	bool is_due = stream->received - stream->received_told >= every ||
	              stream->granted - stream->granted_told >= every ||
	              (stream->has_ended && !stream->is_end_told);
	if (is_due && list_is_empty(&stream->due)) {
		list_append(&stream->mux->due, &stream->due);
	}
}

void mux_stream_consume(struct mux_stream *stream, size_t count)
{
	assert(stream->direction == MUX_IN);
	buf_consume(&stream->bytes, count);
	buf_trim(&stream->bytes, MUX_KEPT_BUFFER);
	stream->granted += count;
	mux_note_window(stream);
}

static void send_reset(struct mux *mux, uint32_t stream)
{
	struct error err;
	const struct runner_message message = {.kind = RUNNER_RESET, .id = stream};
	mux->is_broken = !mux_send(mux, &message, &err) || mux->is_broken;
}

void mux_refuse(struct mux *mux, const struct runner_stream *stream)
{
	if (stream->stream > mux->last_stream) {
		mux->last_stream = stream->stream;
		send_reset(mux, stream->stream);
	}
}

void mux_stream_close(struct mux_stream *stream)
{
	if (!stream) {
		return;
	}
	bool knows = stream->is_reset || (stream->direction == MUX_IN && stream->is_end_told);
	if (!knows && !stream->mux->is_doomed) {
		send_reset(stream->mux, stream->number);
	}
	mux_stream_remove(stream);
}
