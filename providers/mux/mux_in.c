/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "providers/mux/mux_impl.h"

/* How a side handles received bytes. */

static bool broke(struct error *err, const char *rule, const struct runner_header *header)
{
	return error_set(err, ERROR_PROTOCOL,
		"the other side of the link broke its rules: %s (type %u, stream %u, number %llu, "
		"%zu bytes)",
		rule, header->type, (unsigned)header->stream, (unsigned long long)header->number,
		header->size);
}

/* Frames may still come for a stream that we gave up or that has ended. */
static bool is_past(const struct mux *mux, uint32_t number)
{
	return number > 0 && number <= mux->last_stream;
}

static void take_reset(struct mux *mux, uint64_t number)
{
	struct mux_stream *stream =
		number <= UINT32_MAX ? mux_stream_find(mux, (uint32_t)number) : NULL;
	if (!stream || stream->is_reset) {
		return;
	}
	const struct mux_stream_listener *listener = stream->listener;
	void *data = stream->data;
	if (!listener && stream->is_finished) {
		mux_stream_remove(stream);
		return;
	}
	stream->is_reset = true;
	list_remove(&stream->ready);
	list_remove(&stream->due);
	if (stream->class == MUX_BULK && stream->direction == MUX_OUT) {
		mux_flow_forget(&mux->flow, stream->sent - stream->begin);
	}
	stream->begin = stream->may_send = stream->sent;
	buf_finish(&stream->bytes);
	if (listener) {
		listener->on_reset(data);
	}
}

/* Takes the complete messages. */
static bool take_messages(struct mux *mux, const struct runner_header *header, struct error *err)
{
	struct buf *bytes = &mux->control_in->bytes;
	size_t most = mux->side == MUX_RUNNER ? RUNNER_MESSAGE_MAX : RUNNER_REPORT_MAX;
	uint32_t size;
	while (!mux->is_doomed && bytes->len >= sizeof(size)) {
		struct runner_message message;
		struct span whole = buf_span(bytes);
		memcpy(&size, whole.data, sizeof(size));
		size = le32toh(size);
		if (size > most) {
			return broke(err, "a message is too large", header);
		}
		if (bytes->len < sizeof(size) + size) {
			return true;
		}
		if (!runner_message_read(
			    (struct span){whole.data + sizeof(size), size}, &message, err)) {
			return false;
		}
		if (message.kind == RUNNER_RESET) {
			take_reset(mux, message.id);
		} else {
			mux->listener->on_message(mux->data, &message);
		}
		mux_stream_consume(mux->control_in, sizeof(size) + size);
	}
	return true;
}

static bool take_data(
	struct mux *mux, const struct runner_header *header, struct span payload, struct error *err)
{
	bool is_control = header->stream == RUNNER_CONTROL_STREAM;
	struct mux_stream *stream =
		is_control ? mux->control_in : mux_stream_find(mux, header->stream);
	if (!stream || stream->is_reset) {
		return stream || is_past(mux, header->stream) ||
		       broke(err, "no such stream", header);
	}
	if (stream->direction != MUX_IN || header->number > stream->received) {
		return broke(err, "bytes of a stream are missing", header);
	}
	uint64_t known = stream->received - header->number;
	if (known > payload.len) {
		return true; // we have all these bytes already
	}
	payload = (struct span){payload.data + known, payload.len - (size_t)known};
	if (payload.len > stream->granted_told - stream->received) {
		return broke(err, "more bytes than its window allows", header);
	}
	if (payload.len > 0 && stream->has_ended) {
		return broke(err, "bytes after the end of a stream", header);
	}
	bool has_news = payload.len > 0 || ((header->flags & RUNNER_FIN) && !stream->has_ended);
	buf_add(&stream->bytes, payload);
	stream->received += payload.len;
	stream->has_ended = stream->has_ended || (header->flags & RUNNER_FIN);
	mux_note_window(stream);
	if (is_control) {
		return take_messages(mux, header, err);
	}
	if (has_news && stream->listener) {
		stream->listener->on_readable(stream->data);
	}
	return true;
}

static bool take_window(struct mux *mux, const struct runner_header *header, struct span payload,
	uint64_t now_us, struct error *err)
{
	uint64_t granted;
	struct mux_stream *stream = header->stream == RUNNER_CONTROL_STREAM
	                                    ? mux->control_out
	                                    : mux_stream_find(mux, header->stream);
	if (!stream || stream->is_reset) {
		/* The message that names a stream may have been lost with the last channel. */
		return stream || is_past(mux, header->stream) || mux->is_resuming ||
		       broke(err, "no such stream", header);
	}
	if (payload.len != sizeof(granted) || stream->direction != MUX_OUT ||
		header->number > stream->sent ||
		(mux->is_resuming && header->number < stream->begin) ||
		((header->flags & RUNNER_FIN) && !stream->is_end_sent)) {
		return broke(err, "an impossible window", header);
	}
	memcpy(&granted, payload.data, sizeof(granted));
	granted = le64toh(granted);
	stream->may_send = granted > stream->may_send ? granted : stream->may_send;
	if (header->number > stream->begin) {
		size_t arrived = (size_t)(header->number - stream->begin);
		mux_flow_note_arrived(&mux->flow, arrived, stream->class == MUX_BULK, now_us);
		buf_consume(&stream->bytes, arrived);
		buf_trim(&stream->bytes, MUX_KEPT_BUFFER);
		stream->begin = header->number;
	}
	if (header->flags & RUNNER_FIN) {
		mux_stream_remove(stream);
		return true;
	}
	if (mux->is_resuming) {
		mux_resume_stream(stream);
	}
	mux_note_ready(stream);
	if (stream->wants_room && mux_stream_room(stream) > 0 && stream->listener) {
		stream->wants_room = false;
		stream->listener->on_writable(stream->data);
	}
	return true;
}

static bool take_hello(
	struct mux *mux, const struct runner_header *header, struct span text, struct error *err)
{
	struct span version = {0};
	char ours[16];
	if (mux->has_hello) {
		return broke(err, "a second hello", header);
	}
	snprintf(ours, sizeof(ours), "%d", RUNNER_VERSION);
	mux->has_hello = true;
	mux->is_foreign = !runner_find_line(text, "version", &version) || !span_is(version, ours);
	mux->listener->on_hello(mux->data, text, !mux->is_foreign);
	return true;
}

static bool take_frame(struct mux *mux, const struct runner_header *header, struct span payload,
	uint64_t now_us, struct error *err)
{
	if (header->type == RUNNER_HELLO) {
		return take_hello(mux, header, payload, err);
	}
	if (!mux->has_hello) {
		return broke(err, "no hello", header);
	}
	if (header->type == RUNNER_END || header->type == RUNNER_STATUS) {
		const struct mux_listener *listener = mux->listener;
		(header->type == RUNNER_END ? listener->on_end : listener->on_status)(
			mux->data, payload);
		return true;
	}
	if (mux->is_foreign) {
		return true;
	}
	switch (header->type) {
	case RUNNER_DATA:
		return take_data(mux, header, payload, err);
	case RUNNER_WINDOW:
		return take_window(mux, header, payload, now_us, err);
	case RUNNER_PING:
		mux->has_pong = true;
		mux->pong = header->number;
		return true;
	case RUNNER_PONG:
		mux_flow_note_round_trip(&mux->flow, header->number, now_us);
		return true;
	case RUNNER_RESUMED:
		return mux_take_resumed(mux, header) ||
		       broke(err, "it does not say what has arrived", header);
	default:
		return broke(err, "a frame of an unknown type", header);
	}
}

/* Drops everything up to the mark, and the mark. */
static bool skip_banner(struct mux *mux, struct span *bytes, struct error *err)
{
	static const char mark[] = RUNNER_MARK;
	while (!mux->has_mark && bytes->len > 0) {
		char next = *bytes->data;
		*bytes = (struct span){bytes->data + 1, bytes->len - 1};
		/* Only the mark's last byte equals its first, so a new mark can only begin here. */
		mux->mark_len = next == mark[mux->mark_len] ? mux->mark_len + 1
		                : next == mark[0]           ? 1
		                                            : 0;
		mux->has_mark = mux->mark_len == sizeof(mark) - 1;
		if (!mux->has_mark && ++mux->banner_len > RUNNER_BANNER_MAX) {
			return error_set(err, ERROR_PROTOCOL,
				"no runner answered within the first %d bytes", RUNNER_BANNER_MAX);
		}
	}
	return true;
}

/* Takes one frame from the front of the bytes; *out_used is its size, or 0 if it is incomplete. */
static bool take_first(
	struct mux *mux, struct span bytes, size_t *out_used, uint64_t now_us, struct error *err)
{
	struct runner_header header;
	*out_used = 0;
	if (bytes.len < RUNNER_HEADER) {
		return true;
	}
	if (!runner_get_header(bytes.data, &header)) {
		return broke(err, "a frame is too large", &header);
	}
	if (bytes.len < RUNNER_HEADER + header.size) {
		return true;
	}
	*out_used = RUNNER_HEADER + header.size;
	return take_frame(
		mux, &header, (struct span){bytes.data + RUNNER_HEADER, header.size}, now_us, err);
}

/* Completes an incomplete frame with bytes from the front. */
static bool take_begun(struct mux *mux, struct span *bytes, uint64_t now_us, struct error *err)
{
	struct runner_header header;
	while (mux->input.len > 0 && bytes->len > 0 && !mux->is_doomed) {
		size_t need = RUNNER_HEADER;
		if (mux->input.len >= RUNNER_HEADER) {
			if (!runner_get_header(buf_span(&mux->input).data, &header)) {
				return broke(err, "a frame is too large", &header);
			}
			need += header.size;
		}
		size_t missing = need > mux->input.len ? need - mux->input.len : 0;
		size_t more = missing < bytes->len ? missing : bytes->len;
		buf_add(&mux->input, (struct span){bytes->data, more});
		*bytes = (struct span){bytes->data + more, bytes->len - more};
		size_t used;
		if (!take_first(mux, buf_span(&mux->input), &used, now_us, err)) {
			return false;
		}
		buf_consume(&mux->input, used);
	}
	return true;
}

static bool take_bytes(struct mux *mux, struct span bytes, uint64_t now_us, struct error *err)
{
	if (!skip_banner(mux, &bytes, err) || !take_begun(mux, &bytes, now_us, err)) {
		return false;
	}
	while (bytes.len > 0 && !mux->is_doomed) {
		size_t used;
		if (!take_first(mux, bytes, &used, now_us, err)) {
			return false;
		}
		if (used == 0) {
			buf_add(&mux->input, bytes);
			return true;
		}
		bytes = (struct span){bytes.data + used, bytes.len - used};
	}
	return true;
}

bool mux_receive(struct mux *mux, struct span bytes, uint64_t now_us, struct error *err)
{
	assert(mux->depth == 0);
	mux->heard_us = now_us;
	mux->depth++;
	bool is_fine = take_bytes(mux, bytes, now_us, err);
	mux->depth--;
	if (mux->is_doomed) {
		mux_free(mux);
		return true;
	}
	if (is_fine && mux->is_broken) {
		return error_set(
			err, ERROR_LIMIT, "the other side of the link does not read its messages");
	}
	return is_fine;
}
