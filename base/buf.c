/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST_CAPACITY = 512 };

static void *or_abort(void *memory)
{
	if (!memory) {
		fputs("acp-broker: out of memory\n", stderr);
		abort();
	}
	return memory;
}

void *mem_alloc(size_t size)
{
	return or_abort(malloc(size ? size : 1));
}

void *mem_alloc_zero(size_t size)
{
	return or_abort(calloc(1, size ? size : 1));
}

void *mem_realloc(void *memory, size_t size)
{
	return or_abort(realloc(memory, size ? size : 1));
}

char *mem_strdup(const char *text)
{
	return or_abort(strdup(text));
}

char *mem_strdup_or_null(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

char *mem_strndup(struct span text)
{
	char *copy = mem_alloc(text.len + 1);
	if (text.len > 0) {
		memcpy(copy, text.data, text.len);
	}
	copy[text.len] = '\0';
	return copy;
}

void mem_set_text(char **text, const char *value)
{
	char *copy = mem_strdup(value);
	free(*text);
	*text = copy;
}

void mem_wipe_free(char *secret)
{
	if (secret) {
		explicit_bzero(secret, strlen(secret));
		free(secret);
	}
}

void buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){.max = max};
}

void buf_finish(struct buf *buf)
{
	free(buf->data);
	buf_init(buf, buf->max);
}

void buf_wipe(struct buf *buf)
{
	if (buf->data) {
		explicit_bzero(buf->data, buf->capacity);
	}
	buf_finish(buf);
}

struct span buf_span(const struct buf *buf)
{
	return (struct span){buf->data ? buf->data + buf->head : NULL, buf->len};
}

/* Moves the live bytes to the front, so that all free space is behind them. */
static void compact(struct buf *buf)
{
	if (buf->head > 0) {
		assert(buf->data);
		memmove(buf->data, buf->data + buf->head, buf->len);
		buf->head = 0;
	}
}

/*
 * The maximum of allocated bytes. It is a quarter more than the maximum, so that a buffer that is
 * always nearly full moves its bytes only after a quarter of them was consumed.
 */
static size_t capacity_max(const struct buf *buf)
{
	size_t slack = buf->max / 4;
	return buf->max > SIZE_MAX - slack ? SIZE_MAX : buf->max + slack;
}

/* Doubles the memory, to at least `need` bytes. */
static void grow(struct buf *buf, size_t need)
{
	size_t capacity = buf->capacity > SIZE_MAX / 2 ? SIZE_MAX : buf->capacity * 2;
	capacity = capacity > BUF_FIRST_CAPACITY ? capacity : BUF_FIRST_CAPACITY;
	capacity = capacity > need ? capacity : need;
	/* Only buffers that are consumed from get the quarter more. */
	size_t most = buf->head > 0 ? capacity_max(buf) : buf->max;
	capacity = capacity < most ? capacity : most;
	assert(capacity >= need);
	compact(buf);
	buf->data = mem_realloc(buf->data, capacity);
	buf->capacity = capacity;
}

/*
 * Makes room behind the live bytes. Moves them to the front only if that moves no more bytes than
 * were consumed, or if the memory may not grow. So appending costs constant time per byte.
 */
char *buf_reserve(struct buf *buf, size_t more, struct error *err)
{
	if (more > buf->max - buf->len) {
		error_set(err, ERROR_LIMIT, "more than %zu bytes", buf->max);
		return NULL;
	}
	size_t need = buf->len + more;
	bool fits = more <= buf->capacity - buf->head - buf->len;
	if (!fits && need <= buf->capacity &&
		(buf->head >= buf->len || buf->capacity >= capacity_max(buf))) {
		compact(buf);
	} else if (!fits || !buf->data) {
		grow(buf, need);
	}
	return buf->data + buf->head + buf->len;
}

void buf_commit(struct buf *buf, size_t written)
{
	assert(written <= buf->capacity - buf->head - buf->len);
	assert(written <= buf->max - buf->len);
	buf->len += written;
}

bool buf_append(struct buf *buf, struct span bytes, struct error *err)
{
	char *to = buf_reserve(buf, bytes.len, err);
	if (!to) {
		return false;
	}
	if (bytes.len > 0) {
		memcpy(to, bytes.data, bytes.len);
	}
	buf->len += bytes.len;
	return true;
}

bool buf_prepend(struct buf *buf, struct span bytes, struct error *err)
{
	if (bytes.len == 0) {
		return true;
	}
	if (buf->head < bytes.len || bytes.len > buf->max - buf->len) {
		if (!buf_reserve(buf, bytes.len, err)) {
			return false;
		}
		char *live = buf->data + buf->head;
		memmove(live + bytes.len, live, buf->len);
	} else {
		buf->head -= bytes.len;
	}
	memcpy(buf->data + buf->head, bytes.data, bytes.len);
	buf->len += bytes.len;
	return true;
}

void buf_add(struct buf *buf, struct span bytes)
{
	bool fits = buf_append(buf, bytes, NULL);
	assert(fits);
	(void)fits;
}

bool buf_append_format(struct buf *buf, struct error *err, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	/* Negative if the text is longer than INT_MAX. */
	if (len < 0 || (size_t)len > buf->max - buf->len) {
		return error_set(err, ERROR_LIMIT, "more than %zu bytes", buf->max);
	}
	char *text = mem_alloc((size_t)len + 1);
	va_start(args, format);
	len = vsnprintf(text, (size_t)len + 1, format, args);
	va_end(args);
	bool ok = buf_append(buf, (struct span){text, (size_t)len}, err);
	free(text);
	return ok;
}

void buf_consume(struct buf *buf, size_t count)
{
	assert(count <= buf->len);
	buf->head += count;
	buf->len -= count;
	if (buf->len == 0) {
		buf->head = 0;
	}
}

void buf_clear(struct buf *buf)
{
	buf->head = 0;
	buf->len = 0;
}

void buf_trim(struct buf *buf, size_t keep)
{
	if (buf->len == 0 && buf->capacity > keep) {
		buf_finish(buf);
	}
}

void buf_move(struct buf *to, struct buf *from)
{
	assert(to->len == 0 && from->len <= to->max);
	free(to->data);
	size_t max = to->max;
	*to = *from;
	to->max = max;
	buf_init(from, from->max);
}

void buf_fit(struct buf *buf, size_t slack)
{
	if (buf->len == 0 || buf->capacity - buf->len <= slack) {
		return;
	}
	if (buf->head > slack) {
		memmove(buf->data, buf->data + buf->head, buf->len);
		buf->head = 0;
	}
	buf->capacity = buf->head + buf->len;
	buf->data = mem_realloc(buf->data, buf->capacity);
}
