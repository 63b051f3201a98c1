/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/output_tail.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_utf8.h"
#include "base/utf8.h"

enum { CAPACITY_FIRST = 4096 };

#define REPLACEMENT SPAN_LITERAL("\xef\xbf\xbd")

void output_tail_init(struct output_tail *tail, size_t limit)
{
	*tail = (struct output_tail){.limit = limit};
}

void output_tail_finish(struct output_tail *tail)
{
	free(tail->ring);
	output_tail_init(tail, tail->limit);
}

void output_tail_drop(struct output_tail *tail)
{
	free(tail->ring);
	*tail = (struct output_tail){.total = tail->total};
}

/* Copies kept bytes, starting at index `from` of the kept ones. */
static void copy_kept(const struct output_tail *tail, size_t from, size_t len, char *to)
{
	size_t at = tail->start + from;
	at -= at >= tail->capacity ? tail->capacity : 0;
	size_t first = tail->capacity - at < len ? tail->capacity - at : len;
	memcpy(to, tail->ring + at, first);
	memcpy(to + first, tail->ring, len - first);
}

/* Makes room for `need` bytes, but at most for the limit. */
static void grow(struct output_tail *tail, size_t need)
{
	if (need <= tail->capacity || tail->capacity == tail->limit) {
		return;
	}
	size_t capacity = tail->capacity * 2 > CAPACITY_FIRST ? tail->capacity * 2 : CAPACITY_FIRST;
	capacity = capacity > need ? capacity : need;
	capacity = capacity < tail->limit ? capacity : tail->limit;
	char *ring = mem_alloc(capacity);
	if (tail->len > 0) {
		copy_kept(tail, 0, tail->len, ring);
	}
	free(tail->ring);
	tail->ring = ring;
	tail->capacity = capacity;
	tail->start = 0;
}

void output_tail_add(struct output_tail *tail, struct span bytes)
{
	tail->total += bytes.len;
	if (bytes.len > tail->limit) {
		bytes = (struct span){bytes.data + bytes.len - tail->limit, tail->limit};
	}
	if (bytes.len == 0) {
		return;
	}
	size_t room = tail->limit - tail->len;
	grow(tail, bytes.len > room ? tail->limit : tail->len + bytes.len);
	size_t gone =
		tail->len + bytes.len > tail->capacity ? tail->len + bytes.len - tail->capacity : 0;
	tail->start = (tail->start + gone) % tail->capacity;
	tail->len -= gone;
	size_t at = (tail->start + tail->len) % tail->capacity;
	size_t first = tail->capacity - at < bytes.len ? tail->capacity - at : bytes.len;
	memcpy(tail->ring + at, bytes.data, first);
	memcpy(tail->ring, bytes.data + first, bytes.len - first);
	tail->len += bytes.len;
}

/* ---- as text ---- */

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Drops the rest of a character whose beginning is missing. */
static struct span without_rest(struct span bytes)
{
	for (int i = 0; i < UTF8_MAX - 1 && bytes.len > 0 && is_continuation(bytes.data[0]); i++) {
		bytes = (struct span){bytes.data + 1, bytes.len - 1};
	}
	return bytes;
}

static void append_text(struct buf *out, struct span bytes)
{
	while (bytes.len > 0) {
		size_t valid = utf8_valid_length(bytes.data, bytes.len);
		buf_add(out, (struct span){bytes.data, valid});
		bytes = (struct span){bytes.data + valid, bytes.len - valid};
		if (bytes.len > 0) {
			buf_add(out, REPLACEMENT);
			bytes = (struct span){bytes.data + 1, bytes.len - 1};
		}
	}
}

/* Removes bytes of `out` from `begin` on, so that at most max are left. */
static bool cut_front(struct buf *out, size_t begin, size_t max)
{
	size_t len = out->len - begin;
	if (len <= max) {
		return false;
	}
	char *text = out->data + out->head + begin;
	struct span kept = without_rest((struct span){text + len - max, max});
	memmove(text, kept.data, kept.len);
	out->len = begin + kept.len;
	return true;
}

bool output_tail_text(const struct output_tail *tail, size_t max, bool has_ended, struct buf *out)
{
	size_t begin = out->len;
	size_t len = tail->len < max ? tail->len : max;
	bool is_cut = tail->total > len;
	if (len == 0) {
		return is_cut;
	}
	char *bytes = mem_alloc(len);
	copy_kept(tail, tail->len - len, len, bytes);
	struct span text = {bytes, len};
	text.len = has_ended ? len : utf8_whole_length(text);
	append_text(out, is_cut ? without_rest(text) : text);
	free(bytes);
	return cut_front(out, begin, max) || is_cut;
}

uint64_t output_tail_next(const struct output_tail *tail, uint64_t *position, size_t max,
	bool has_ended, struct buf *out)
{
	assert(*position <= tail->total);
	uint64_t oldest = tail->total - tail->len;
	uint64_t gone = oldest > *position ? oldest - *position : 0;
	uint64_t from = *position + gone;
	size_t len = tail->total - from < max ? (size_t)(tail->total - from) : max;
	if (len == 0) {
		*position = from;
		return gone;
	}
	char *bytes = mem_alloc(len);
	copy_kept(tail, (size_t)(from - oldest), len, bytes);
	struct span text = {bytes, len};
	bool is_last = has_ended && from + len == tail->total;
	text.len = is_last ? len : utf8_whole_length(text);
	*position = from + text.len;
	append_text(out, gone > 0 ? without_rest(text) : text);
	free(bytes);
	return gone;
}
