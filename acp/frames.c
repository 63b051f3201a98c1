/* SPDX-License-Identifier: MIT */
#include "acp/frames.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROOM_MAX = 1024 * 1024,         // offered for one read of a large message
	ROOM_MIN = FRAME_READ_SIZE / 2, // the least that is offered
	BUSY_KEEP = 2 * ROOM_MAX,       // memory kept while a small part of a line is buffered
};

/*
 * The buffer; [ ] is the current line:
 *
 *     consumed | [ checked | not checked ... ] later lines | room
 *     0        head        checked                        len     capacity
 *
 * A line that is not stored (refused, or too long) is dropped while it arrives: only its length and
 * its beginning are known then.
 */
struct frame_reader {
	struct json_check *check;
	size_t max_message;
	char *data; // owned; NULL while capacity is 0
	size_t capacity;
	size_t head;
	size_t checked;
	size_t len;
	bool has_returned;    // next has returned the current line:
	struct span returned; // ... its bytes
	size_t next_line;     // ... and where the following line begins
	size_t dropped;       // bytes of the current line that came before head
	bool is_dropping;
	bool dropped_cr; // the last dropped byte is a carriage return
	bool is_bad;     // the check has refused the current line: error
	struct error error;
	size_t beginning_len;
	char beginning[FRAME_BEGINNING_MAX]; // of a dropped line
};

struct frame_reader *frame_reader_create(const struct json_places *places, size_t max_message)
{
	struct frame_reader *reader = mem_alloc_zero(sizeof(*reader));
	reader->check = json_check_create(places);
	reader->max_message = max_message;
	return reader;
}

void frame_reader_destroy(struct frame_reader *reader)
{
	if (reader) {
		json_check_destroy(reader->check);
		free(reader->data);
		free(reader);
	}
}

/* The next line begins at `head`. */
static void begin_line(struct frame_reader *reader, size_t head)
{
	reader->head = head;
	reader->checked = head;
	reader->has_returned = false;
	reader->dropped = 0;
	reader->is_dropping = false;
	reader->is_bad = false;
	reader->beginning_len = 0;
	json_check_reset(reader->check);
}

static void forget_returned(struct frame_reader *reader)
{
	if (reader->has_returned) {
		begin_line(reader, reader->next_line);
	}
}

/* Moves the bytes from head on to new memory of that capacity, or to the front. */
static void rehouse(struct frame_reader *reader, size_t capacity)
{
	size_t live = reader->len - reader->head;
	if (capacity < reader->capacity) {
		char *data = mem_alloc(capacity);
		memcpy(data, reader->data + reader->head, live);
		free(reader->data);
		reader->data = data;
	} else {
		if (live > 0) {
			memmove(reader->data, reader->data + reader->head, live);
		}
		if (capacity > reader->capacity) {
			reader->data = mem_realloc(reader->data, capacity);
		}
	}
	reader->capacity = capacity;
	reader->checked -= reader->head;
	reader->len = live;
	reader->head = 0;
}

static void release(struct frame_reader *reader)
{
	free(reader->data);
	reader->data = NULL;
	reader->capacity = 0;
}

/* Releases memory that only earlier lines needed. */
static void settle(struct frame_reader *reader)
{
	size_t live = reader->len - reader->head;
	if (live == 0) {
		reader->head = reader->checked = reader->len = 0;
		if (reader->capacity > FRAME_IDLE_KEEP) {
			release(reader);
		}
	} else if (reader->capacity > BUSY_KEEP && live <= ROOM_MIN) {
		rehouse(reader, FRAME_READ_SIZE);
	}
}

static size_t grown(const struct frame_reader *reader)
{
	if (reader->capacity == 0) {
		return FRAME_READ_SIZE;
	}
	size_t capacity = reader->capacity < ROOM_MAX ? BUSY_KEEP : 2 * reader->capacity;
	/* The line end, and a part of the next lines. */
	size_t most = reader->max_message + 2 + FRAME_READ_SIZE;
	size_t least = reader->len - reader->head + ROOM_MIN;
	capacity = capacity < most ? capacity : most;
	return capacity > least ? capacity : least;
}

char *frame_reader_space(struct frame_reader *reader, size_t *out_size)
{
	forget_returned(reader);
	settle(reader);
	if (reader->capacity - reader->len < ROOM_MIN) {
		bool fits = reader->capacity - (reader->len - reader->head) >= ROOM_MIN;
		rehouse(reader, fits ? reader->capacity : grown(reader));
	}
	size_t room = reader->capacity - reader->len;
	*out_size = room < ROOM_MAX ? room : ROOM_MAX;
	return reader->data + reader->len;
}

void frame_reader_fed(struct frame_reader *reader, size_t count)
{
	assert(count <= reader->capacity - reader->len);
	reader->len += count;
}

/* Checks the current line up to `stop`. */
static void check_line(struct frame_reader *reader, size_t stop)
{
	if (!reader->is_bad && stop > reader->checked) {
		struct span bytes = {reader->data + reader->checked, stop - reader->checked};
		reader->is_bad = !json_check_feed(reader->check, bytes, &reader->error);
	}
	reader->checked = stop;
}

/* The length of the current line if it ends at `stop`, without a carriage return. */
static size_t line_length(const struct frame_reader *reader, size_t stop)
{
	size_t length = reader->dropped + (stop - reader->head);
	bool has_cr = stop > reader->head ? reader->data[stop - 1] == '\r' : reader->dropped_cr;
	return length > 0 && has_cr ? length - 1 : length;
}

/* Drops the current line up to `stop`; keeps its length and beginning. */
static void drop_line(struct frame_reader *reader, size_t stop)
{
	size_t count = stop - reader->head;
	if (count > 0) {
		size_t room = sizeof(reader->beginning) - reader->beginning_len;
		size_t more = count < room ? count : room;
		memcpy(reader->beginning + reader->beginning_len, reader->data + reader->head,
			more);
		reader->beginning_len += more;
		reader->dropped += count;
		reader->dropped_cr = reader->data[stop - 1] == '\r';
	}
	reader->is_dropping = true;
	reader->head = reader->checked = stop;
}

static void judge_line(struct frame_reader *reader, struct frame *out_frame)
{
	out_frame->error.code = ERROR_NONE;
	out_frame->error.reason = NULL;
	out_frame->error.text[0] = '\0';
	if (out_frame->length > reader->max_message) {
		out_frame->kind = FRAME_TOO_LONG;
		error_set(&out_frame->error, ERROR_LIMIT,
			"a message of %zu bytes; the maximum is %zu", out_frame->length,
			reader->max_message);
		return;
	}
	if (!reader->is_bad) {
		reader->is_bad = !json_check_end(reader->check, &reader->error);
	}
	out_frame->kind = FRAME_MESSAGE;
	if (reader->is_bad) {
		out_frame->kind = FRAME_INVALID;
		out_frame->error = reader->error;
	}
}

/*
 * The current line ends at `stop`, and the next one begins `skip` bytes later. Returns false for a
 * blank line.
 */
static bool end_line(struct frame_reader *reader, size_t stop, size_t skip, struct frame *out_frame)
{
	if (json_check_is_blank(reader->check)) {
		begin_line(reader, stop + skip);
		return false;
	}
	out_frame->length = line_length(reader, stop);
	out_frame->check = reader->check;
	judge_line(reader, out_frame);
	size_t shown = out_frame->length;
	if (out_frame->kind != FRAME_MESSAGE && shown > FRAME_BEGINNING_MAX) {
		shown = FRAME_BEGINNING_MAX;
	}
	if (reader->is_dropping) {
		drop_line(reader, stop);
		out_frame->bytes = (struct span){reader->beginning, shown};
	} else {
		out_frame->bytes = (struct span){reader->data + reader->head, shown};
	}
	reader->returned = out_frame->bytes;
	reader->next_line = stop + skip;
	reader->has_returned = true;
	return true;
}

bool frame_reader_next(struct frame_reader *reader, struct frame *out_frame)
{
	forget_returned(reader);
	for (;;) {
		size_t left = reader->len - reader->checked;
		const char *newline =
			left ? memchr(reader->data + reader->checked, '\n', left) : NULL;
		if (!newline) {
			break;
		}
		size_t stop = (size_t)(newline - reader->data);
		check_line(reader, stop);
		if (end_line(reader, stop, 1, out_frame)) {
			return true;
		}
	}
	check_line(reader, reader->len);
	if (reader->is_bad || reader->is_dropping ||
		line_length(reader, reader->len) > reader->max_message) {
		drop_line(reader, reader->len);
	}
	settle(reader);
	return false;
}

bool frame_reader_end(struct frame_reader *reader, struct frame *out_frame)
{
	forget_returned(reader);
	check_line(reader, reader->len);
	return end_line(reader, reader->len, 0, out_frame);
}

/* Moves the bytes behind the returned message to memory of their own. */
static void detach_rest(struct frame_reader *reader, size_t rest)
{
	const char *from = reader->data + reader->next_line;
	reader->data = NULL;
	reader->capacity = 0;
	if (rest > 0) {
		reader->capacity = rest > FRAME_READ_SIZE ? rest : FRAME_READ_SIZE;
		reader->data = mem_alloc(reader->capacity);
		memcpy(reader->data, from, rest);
	}
	reader->head = 0;
	reader->next_line = 0;
	reader->len = rest;
}

void frame_reader_take(struct frame_reader *reader, struct buf *to)
{
	assert(reader->has_returned && to->len == 0 && reader->returned.len <= to->max);
	struct span bytes = reader->returned;
	reader->returned = (struct span){0};
	size_t rest = reader->len - reader->next_line;
	/* If the message is smaller than the bytes around it, copying it is cheaper. */
	if (reader->is_dropping || bytes.len < reader->head + rest) {
		buf_add(to, bytes);
		return;
	}
	struct buf from = {
		.data = reader->data,
		.head = reader->head,
		.len = bytes.len,
		.capacity = reader->capacity,
		.max = to->max,
	};
	detach_rest(reader, rest);
	buf_move(to, &from);
}

size_t frame_reader_pending(const struct frame_reader *reader)
{
	return reader->len - (reader->has_returned ? reader->next_line : reader->head);
}
