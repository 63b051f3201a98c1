/* SPDX-License-Identifier: MIT */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * A growing byte buffer with a maximum from birth. Bytes are appended at the end and consumed at
 * the front. A call that would exceed the maximum fails with ERROR_LIMIT and leaves the buffer
 * unchanged; running out of memory aborts. Pointers into a buffer are valid until the next append,
 * reserve, consume or finish. The buffer allocates at most the maximum, or a quarter more if bytes
 * are consumed while others follow them.
 */
struct buf {
	char *data;      // owned; NULL until the first allocation
	size_t head;     // consumed bytes before the live ones
	size_t len;      // live bytes, from data + head
	size_t capacity; // allocated bytes
	size_t max;      // len never exceeds it
};

void buf_init(struct buf *buf, size_t max);
void buf_finish(struct buf *buf); // frees; the buffer can be used again as if new
void buf_wipe(struct buf *buf);   // the same, and overwrites the bytes first

struct span buf_span(const struct buf *buf); // the live bytes, borrowed

/* The appended bytes must lie outside the buffer. The arguments of a format may lie in it. */
bool buf_append(struct buf *buf, struct span bytes, struct error *err) ATTR_NODISCARD;
bool buf_append_format(struct buf *buf, struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4) ATTR_NODISCARD;

/* buf_append for bytes that the caller knows to fit. Asserts that they fit. */
void buf_add(struct buf *buf, struct span bytes);

/*
 * Puts bytes before the existing ones. If as many bytes were consumed, they go there and nothing
 * moves. Fails like buf_append.
 */
bool buf_prepend(struct buf *buf, struct span bytes, struct error *err) ATTR_NODISCARD;

/*
 * Makes room for `more` bytes after the live ones and returns where they go, or
 * NULL (ERROR_LIMIT). buf_commit then says how many were written.
 */
char *buf_reserve(struct buf *buf, size_t more, struct error *err) ATTR_NODISCARD;
void buf_commit(struct buf *buf, size_t written);

void buf_consume(struct buf *buf, size_t count); // from the front; count <= len
void buf_clear(struct buf *buf);                 // keeps the memory

/* Frees the memory if more than `keep` bytes are allocated and the buffer is empty. */
void buf_trim(struct buf *buf, size_t keep);

/*
 * Moves the bytes and their memory to *to, which must be initialised and empty; *from is empty
 * afterwards. Each buffer keeps its own maximum. The bytes must fit into the maximum of *to.
 */
void buf_move(struct buf *to, struct buf *from);

/* Frees the unused memory if it is more than `slack`; keeps at most that much in front. */
void buf_fit(struct buf *buf, size_t slack);

/* malloc, calloc, realloc and strdup that abort if there is no memory. */
void *mem_alloc(size_t size);
void *mem_alloc_zero(size_t size);
void *mem_realloc(void *memory, size_t size);
char *mem_strdup(const char *text);
char *mem_strdup_or_null(const char *text);        // returns NULL for NULL
char *mem_strndup(struct span text);               // terminated copy
void mem_set_text(char **text, const char *value); // frees the old one, keeps a copy

void mem_wipe_free(char *secret); // overwrites the text, then frees it; NULL is fine

#endif
