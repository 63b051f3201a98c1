/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <stdio.h>

#include "providers/mux/mux_impl.h"

/* What a side sends, and in which order. */

enum { USEFUL_SPACE = 1024 }; // with less space, no part of a longer content is sent

static void put_text(struct mux *mux, enum runner_type type, const char *first, struct span text)
{
	struct mux_text *out = &mux->texts[type - RUNNER_HELLO];
	struct error err;
	buf_clear(&out->text);
	out->is_due = true;
	text.len = text.len < RUNNER_TEXT_MAX - 64 ? text.len : RUNNER_TEXT_MAX - 64;
	if (!buf_append(&out->text, span_of(first), &err) || !buf_append(&out->text, text, &err)) {
		mux->is_broken = true;
	}
}

void mux_hello(struct mux *mux, struct span text)
{
	char version[32];
	snprintf(version, sizeof(version), "version=%d\n", RUNNER_VERSION);
	put_text(mux, RUNNER_HELLO, version, text);
}

void mux_end(struct mux *mux, struct span text)
{
	put_text(mux, RUNNER_END, "", text);
}

void mux_status(struct mux *mux, struct span text)
{
	put_text(mux, RUNNER_STATUS, "", text);
}

bool mux_send(struct mux *mux, const struct runner_message *message, struct error *err)
{
	struct buf out;
	uint32_t size;
	size_t most = mux->side == MUX_BROKER ? RUNNER_MESSAGE_MAX : RUNNER_REPORT_MAX;
	buf_init(&out, most);
	bool is_fine = runner_message_write(&out, message, err);
	if (is_fine && mux->control_out->bytes.len + sizeof(size) + out.len > MUX_CONTROL_MAX) {
		is_fine = error_set(
			err, ERROR_LIMIT, "the other side of the link does not read its messages");
	}
	if (is_fine) {
		size = htole32((uint32_t)out.len);
		buf_add(&mux->control_out->bytes, (struct span){(char *)&size, sizeof(size)});
		buf_add(&mux->control_out->bytes, buf_span(&out));
		mux_note_ready(mux->control_out);
	}
	buf_finish(&out);
	return is_fine;
}

static size_t space_left(const struct mux *mux)
{
	return mux->stage.max - mux->stage.len;
}

static bool put_frame(struct mux *mux, const struct runner_header *header, struct span payload)
{
	char bytes[RUNNER_HEADER];
	if (space_left(mux) < RUNNER_HEADER + payload.len) {
		return false;
	}
	runner_put_header(bytes, header);
	buf_add(&mux->stage, (struct span){bytes, sizeof(bytes)});
	buf_add(&mux->stage, payload);
	return true;
}

static bool put_mark(struct mux *mux)
{
	if (mux->has_sent_mark) {
		return true;
	}
	buf_add(&mux->stage, SPAN_LITERAL(RUNNER_MARK));
	mux->has_sent_mark = true;
	return true;
}

/* Sends HELLO, END and STATUS. Nothing is sent before HELLO. */
static bool put_texts(struct mux *mux)
{
	for (size_t i = 0; i < ARRAY_LENGTH(mux->texts); i++) {
		struct mux_text *text = &mux->texts[i];
		const struct runner_header header = {
			.size = text->text.len, .type = (uint8_t)(RUNNER_HELLO + i)};
		if (text->is_due && !put_frame(mux, &header, buf_span(&text->text))) {
			return false;
		}
		mux->has_said_hello = mux->has_said_hello || text->is_due;
		text->is_due = false;
	}
	return true;
}

static void make_all_due(struct mux *mux)
{
	for (size_t i = 0; i <= mux->stream_count; i++) {
		struct mux_stream *stream =
			i < mux->stream_count ? mux->streams[i] : mux->control_in;
		bool has_news = stream->received != stream->received_told ||
		                stream->granted != stream->granted_told;
		if (stream->direction == MUX_IN && has_news && list_is_empty(&stream->due)) {
			list_append(&mux->due, &stream->due);
		}
	}
}

/* A heartbeat also carries small changes of windows. */
static bool put_beats(struct mux *mux, uint64_t now_us)
{
	if (mux->has_pong) {
		const struct runner_header pong = {.type = RUNNER_PONG, .number = mux->pong};
		mux->has_pong = !put_frame(mux, &pong, (struct span){0});
	}
	if (now_us >= mux->ping_us) {
		const struct runner_header ping = {.type = RUNNER_PING, .number = now_us};
		if (!put_frame(mux, &ping, (struct span){0})) {
			return false;
		}
		mux->ping_us = now_us + mux->ping_every_us;
		make_all_due(mux);
	}
	return !mux->has_pong;
}

static bool put_windows(struct mux *mux)
{
	struct mux_stream *stream;
	while ((stream = LIST_FIRST(&mux->due, struct mux_stream, due)) != NULL) {
		uint64_t granted = htole64(stream->granted);
		const struct runner_header header = {.size = sizeof(granted),
			.type = RUNNER_WINDOW,
			.flags = stream->has_ended ? RUNNER_FIN : 0,
			.stream = stream->number,
			.number = stream->received};
		struct span payload = {(const char *)&granted, sizeof(granted)};
		if (!put_frame(mux, &header, payload)) {
			return false;
		}
		stream->received_told = stream->received;
		stream->granted_told = stream->granted;
		stream->is_end_told = stream->has_ended;
		list_remove(&stream->due);
	}
	return true;
}

/* Sends RESUMED, after the windows have told the peer how much has arrived here. */
static bool put_resumed(struct mux *mux)
{
	const struct runner_header header = {.type = RUNNER_RESUMED, .number = mux->last_stream};
	mux->owes_resumed = mux->owes_resumed && !put_frame(mux, &header, (struct span){0});
	return !mux->owes_resumed;
}

/* Sends one frame of a stream with at most `most` bytes. False: it needs an empty stage. */
static bool put_data(struct mux_stream *stream, size_t most, uint64_t now_us)
{
	struct mux *mux = stream->mux;
	size_t at = (size_t)(stream->sent - stream->begin);
	uint64_t end = stream->begin + stream->bytes.len;
	uint64_t until = end < stream->may_send ? end : stream->may_send;
	size_t len = (size_t)(until - stream->sent);
	size_t space = space_left(mux);
	if (space < RUNNER_HEADER || (space < RUNNER_HEADER + USEFUL_SPACE && len > space)) {
		return false;
	}
	space -= RUNNER_HEADER;
	most = most < space ? most : space;
	len = len < most ? len : most;
	bool is_end = stream->is_finished && stream->sent + len == end;
	const struct runner_header header = {.size = len,
		.type = RUNNER_DATA,
		.flags = is_end ? RUNNER_FIN : 0,
		.stream = stream->number,
		.number = stream->sent};
	if (!put_frame(mux, &header,
		    (struct span){len > 0 ? buf_span(&stream->bytes).data + at : NULL, len})) {
		return false;
	}
	stream->sent += len;
	stream->is_end_sent = is_end;
	if (stream->class == MUX_BULK) {
		mux_flow_note_sent(&mux->flow, len, now_us);
	}
	list_remove(&stream->ready);
	mux_note_ready(stream);
	return true;
}

/* Sends one frame of the stream whose turn it is. */
static bool put_next(struct mux *mux, uint64_t now_us)
{
	struct mux_stream *stream = LIST_FIRST(&mux->ready[MUX_AGENT], struct mux_stream, ready);
	size_t most = RUNNER_PAYLOAD_MAX;
	if (!list_is_empty(&mux->control_out->ready)) {
		stream = mux->control_out;
	} else if (!stream) {
		stream = LIST_FIRST(&mux->ready[MUX_BULK], struct mux_stream, ready);
		most = mux_flow_room(&mux->flow);
	}
	if (!stream || mux->is_foreign || mux->is_resuming ||
		(most == 0 && stream->sent < stream->begin + stream->bytes.len)) {
		return false;
	}
	return put_data(stream, most < RUNNER_PAYLOAD_MAX ? most : RUNNER_PAYLOAD_MAX, now_us);
}

struct span mux_output(struct mux *mux, uint64_t now_us)
{
	bool is_new = mux->stage.len == 0;
	if (is_new && put_mark(mux) && put_texts(mux) && mux->has_said_hello &&
		put_beats(mux, now_us) && put_windows(mux) && put_resumed(mux)) {
		while (put_next(mux, now_us)) {
		}
	}
	return buf_span(&mux->stage);
}

void mux_sent(struct mux *mux, size_t count)
{
	buf_consume(&mux->stage, count);
}
