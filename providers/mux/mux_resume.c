/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "providers/mux/mux_impl.h"

/* What a side does when another channel replaces a lost one. */

static void make_due(struct mux_stream *stream)
{
	bool is_open = stream->direction == MUX_IN && !stream->is_reset;
	stream->is_named = false;
	if (is_open && list_is_empty(&stream->due)) {
		list_append(&stream->mux->due, &stream->due);
	}
}

void mux_restart(struct mux *mux, uint64_t now_us)
{
	assert(mux->depth == 0);
	buf_clear(&mux->input);
	buf_clear(&mux->stage);
	mux->mark_len = mux->banner_len = 0;
	mux->has_mark = mux->has_hello = false;
	mux->has_sent_mark = mux->has_said_hello = false;
	mux->has_pong = false;
	mux->flow = (struct mux_flow){0};
	mux->heard_us = mux->ping_us = now_us;
	mux->owes_resumed = mux->is_resuming = true;
	mux->control_out->is_named = false;
	make_due(mux->control_in);
	for (size_t i = 0; i < mux->stream_count; i++) {
		make_due(mux->streams[i]);
	}
}

bool mux_is_resumed(const struct mux *mux)
{
	return !mux->is_resuming;
}

void mux_acknowledge_at_once(struct mux *mux)
{
	mux->is_prompt = true;
}

void mux_acknowledge(struct mux *mux)
{
	if (list_is_empty(&mux->control_in->due)) {
		list_append(&mux->due, &mux->control_in->due);
	}
}

bool mux_is_acknowledged(const struct mux *mux)
{
	for (size_t i = 0; i < mux->stream_count; i++) {
		const struct mux_stream *stream = mux->streams[i];
		bool has_more = stream->bytes.len > 0 || stream->is_finished;
		if (stream->direction == MUX_OUT && has_more) {
			return false;
		}
	}
	return mux->control_out->bytes.len == 0;
}

uint64_t mux_messages_end(const struct mux *mux)
{
	return mux->control_out->begin + mux->control_out->bytes.len;
}

bool mux_has_arrived(const struct mux *mux, uint64_t messages_end)
{
	return mux->control_out->begin >= messages_end;
}

/* Makes the stream send again the bytes that have not arrived. */
static void rewind_stream(struct mux_stream *stream)
{
	stream->sent = stream->begin;
	stream->is_end_sent = false;
	mux_note_ready(stream);
}

void mux_resume_stream(struct mux_stream *stream)
{
	stream->is_named = true;
	rewind_stream(stream);
}

bool mux_take_resumed(struct mux *mux, const struct runner_header *header)
{
	if (!mux->is_resuming || !mux->control_out->is_named || header->size > 0) {
		return false;
	}
	mux->is_resuming = false;
	for (size_t i = mux->stream_count; i > 0; i--) {
		struct mux_stream *stream = mux->streams[i - 1];
		bool is_known = stream->number <= header->number;
		if (stream->direction != MUX_OUT || stream->is_reset || stream->is_named) {
			continue;
		}
		if (is_known && stream->is_finished) {
			mux_stream_remove(stream); // all of it has arrived, or nobody wants it
		} else {
			rewind_stream(stream); // if the peer knows it, its RESET is under way
		}
	}
	return true;
}
