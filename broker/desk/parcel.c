/* SPDX-License-Identifier: MIT */
#include "broker/desk/parcel.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PARCEL_MOVE_MIN = 32 * 1024 }; // bytes; shorter messages are copied

struct parcel {
	struct buf bytes;
	const struct json_places *places; // borrowed
	struct frame_reader *reader;      // owned; set by parcel_open
	struct frame *frame; // owned; set by parcel_open, because a frame is large and most parcels
	                     // only wait
	struct splice edits;
	const struct method *method; // static
};

static_assert(sizeof(struct parcel) <= PARCEL_OVERHEAD / 4, "there may be many of them");

struct parcel *parcel_create(
	struct frame_reader *from, const struct frame *frame, const struct json_places *places)
{
	struct parcel *parcel = mem_alloc_zero(sizeof(*parcel));
	parcel->places = places;
	buf_init(&parcel->bytes, SIZE_MAX / 2);
	splice_init(&parcel->edits);
	if (frame->bytes.len >= PARCEL_MOVE_MIN) {
		frame_reader_take(from, &parcel->bytes);
		return parcel;
	}
	buf_add(&parcel->bytes, frame->bytes);
	return parcel;
}

struct parcel *parcel_of(struct buf *message, const struct json_places *places)
{
	struct parcel *parcel = mem_alloc_zero(sizeof(*parcel));
	parcel->places = places;
	buf_init(&parcel->bytes, SIZE_MAX / 2);
	splice_init(&parcel->edits);
	buf_move(&parcel->bytes, message);
	return parcel;
}

void parcel_destroy(struct parcel *parcel)
{
	if (!parcel) {
		return;
	}
	if (parcel->reader) {
		frame_reader_destroy(parcel->reader);
	}
	free(parcel->frame);
	splice_finish(&parcel->edits);
	buf_finish(&parcel->bytes);
	free(parcel);
}

struct splice *parcel_edits(struct parcel *parcel)
{
	return &parcel->edits;
}

void parcel_set_method(struct parcel *parcel, const struct method *method)
{
	parcel->method = method;
}

const struct method *parcel_method(const struct parcel *parcel)
{
	return parcel->method;
}

size_t parcel_size(const struct parcel *parcel)
{
	return parcel->bytes.len + PARCEL_OVERHEAD;
}

const struct frame *parcel_open(struct parcel *parcel, struct frame_reader **out_reader)
{
	assert(!parcel->reader);
	parcel->frame = mem_alloc_zero(sizeof(*parcel->frame));
	parcel->reader = frame_reader_create(parcel->places, parcel->bytes.len + 1);
	while (parcel->bytes.len > 0) {
		size_t room;
		char *space = frame_reader_space(parcel->reader, &room);
		size_t take = room < parcel->bytes.len ? room : parcel->bytes.len;
		memcpy(space, buf_span(&parcel->bytes).data, take);
		frame_reader_fed(parcel->reader, take);
		buf_consume(&parcel->bytes, take);
		bool is_early = frame_reader_next(parcel->reader, parcel->frame);
		assert(!is_early); // one message, without its newline
		(void)is_early;
	}
	buf_finish(&parcel->bytes);
	bool is_whole = frame_reader_end(parcel->reader, parcel->frame);
	assert(is_whole && parcel->frame->kind == FRAME_MESSAGE);
	(void)is_whole;
	*out_reader = parcel->reader;
	return parcel->frame;
}
