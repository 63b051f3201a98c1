/* SPDX-License-Identifier: MIT */
#include "acp/splice.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	EDITS_FIRST = 16,
	EDITS_IDLE = 1024,      // edits whose memory is kept between messages
	BYTES_IDLE = 64 * 1024, // the same for the replacements
};

void splice_init(struct splice *splice)
{
	*splice = (struct splice){0};
	buf_init(&splice->bytes, SPLICE_BYTES_MAX);
}

void splice_finish(struct splice *splice)
{
	free(splice->edits);
	buf_finish(&splice->bytes);
	splice_init(splice);
}

void splice_clear(struct splice *splice)
{
	splice->count = 0;
	if (splice->capacity > EDITS_IDLE) {
		free(splice->edits);
		splice->edits = NULL;
		splice->capacity = 0;
	}
	buf_clear(&splice->bytes);
	buf_trim(&splice->bytes, BYTES_IDLE);
}

bool splice_add(
	struct splice *splice, size_t start, size_t end, struct span with, struct error *err)
{
	if (splice->count == SPLICE_EDITS_MAX) {
		return error_set(
			err, ERROR_LIMIT, "more than %d edits of a message", (int)SPLICE_EDITS_MAX);
	}
	size_t at = splice->bytes.len;
	if (!buf_append(&splice->bytes, with, err)) {
		return error_prefix(err, "editing a message");
	}
	if (splice->count == splice->capacity) {
		splice->capacity = splice->capacity ? splice->capacity * 2 : EDITS_FIRST;
		splice->edits =
			mem_realloc(splice->edits, splice->capacity * sizeof(splice->edits[0]));
	}
	splice->edits[splice->count++] = (struct splice_edit){
		.start = start,
		.end = end,
		.with = at,
		.with_len = with.len,
	};
	return true;
}

static bool object_is_empty(struct span object)
{
	for (size_t i = 1; i < object.len; i++) {
		if (!strchr(" \t\r\n", object.data[i])) {
			return object.data[i] == '}';
		}
	}
	return true;
}

bool splice_insert_member(struct splice *splice, struct span text, struct span object,
	const char *name, struct span value, struct error *err)
{
	struct buf member;
	buf_init(&member, SPLICE_BYTES_MAX);
	size_t at = (size_t)(object.data - text.data) + 1;
	bool ok = buf_append_format(&member, err, "\"%s\":", name) &&
	          buf_append(&member, value, err) &&
	          (object_is_empty(object) || buf_append(&member, SPAN_LITERAL(","), err)) &&
	          splice_add(splice, at, at, buf_span(&member), err);
	buf_finish(&member);
	return ok;
}

static int compare_sizes(size_t a, size_t b)
{
	return (a > b) - (a < b);
}

/*
 * Sorts by place; an insertion comes before an edit that replaces the bytes behind it. Replacements
 * lie in the order in which they were added, so that sorting by `with` keeps that order. If that is
 * equal too, one of the two is empty.
 */
static int compare_edits(const struct splice_edit *a, const struct splice_edit *b)
{
	int order = compare_sizes(a->start, b->start);
	if (order == 0) {
		order = compare_sizes(a->end, b->end);
	}
	return order != 0 ? order : compare_sizes(a->with, b->with);
}

static int compare_for_qsort(const void *a, const void *b)
{
	return compare_edits(a, b);
}

/* Edits usually come in order, because hits do. */
static bool is_sorted(const struct splice *splice)
{
	for (size_t i = 1; i < splice->count; i++) {
		if (compare_edits(&splice->edits[i - 1], &splice->edits[i]) > 0) {
			return false;
		}
	}
	return true;
}

bool splice_seal(struct splice *splice, size_t message_len, struct error *err)
{
	if (!is_sorted(splice)) {
		qsort(splice->edits, splice->count, sizeof(splice->edits[0]), compare_for_qsort);
	}
	size_t at = 0;
	for (size_t i = 0; i < splice->count; i++) {
		const struct splice_edit *edit = &splice->edits[i];
		if (edit->start > edit->end || edit->end > message_len) {
			return error_set(err, ERROR_PROTOCOL,
				"an edit of bytes %zu to %zu of a message of %zu", edit->start,
				edit->end, message_len);
		}
		if (edit->start < at) {
			return error_set(err, ERROR_PROTOCOL,
				"two edits of a message overlap at byte %zu", edit->start);
		}
		at = edit->end;
	}
	return true;
}

size_t splice_length(const struct splice *splice, size_t message_len)
{
	size_t length = message_len + splice->bytes.len;
	for (size_t i = 0; i < splice->count; i++) {
		length -= splice->edits[i].end - splice->edits[i].start;
	}
	return length;
}

size_t splice_piece_count(const struct splice *splice)
{
	return 2 * splice->count + 1;
}

/* Adds bytes [start, end) of a text, if there are any. */
static size_t add_piece(
	struct iovec *pieces, size_t count, struct span text, size_t start, size_t end)
{
	if (start == end) {
		return count;
	}
	pieces[count] = (struct iovec){
		.iov_base = (char *)text.data + start,
		.iov_len = end - start,
	};
	return count + 1;
}

size_t splice_pieces(const struct splice *splice, struct span message, struct iovec *out_pieces)
{
	struct span bytes = buf_span(&splice->bytes);
	size_t count = 0;
	size_t at = 0;
	for (size_t i = 0; i < splice->count; i++) {
		const struct splice_edit *edit = &splice->edits[i];
		count = add_piece(out_pieces, count, message, at, edit->start);
		count = add_piece(
			out_pieces, count, bytes, edit->with, edit->with + edit->with_len);
		at = edit->end;
	}
	assert(at <= message.len);
	return add_piece(out_pieces, count, message, at, message.len);
}

bool splice_append(
	const struct splice *splice, struct span message, struct buf *out, struct error *err)
{
	struct span bytes = buf_span(&splice->bytes);
	size_t length = splice_length(splice, message.len);
	char *to = buf_reserve(out, length, err);
	if (!to) {
		return false;
	}
	size_t at = 0;
	for (size_t i = 0; i < splice->count; i++) {
		const struct splice_edit *edit = &splice->edits[i];
		if (edit->start > at) {
			to = mempcpy(to, message.data + at, edit->start - at);
		}
		if (edit->with_len > 0) {
			to = mempcpy(to, bytes.data + edit->with, edit->with_len);
		}
		at = edit->end;
	}
	if (message.len > at) {
		memcpy(to, message.data + at, message.len - at);
	}
	buf_commit(out, length);
	return true;
}
