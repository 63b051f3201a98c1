/* SPDX-License-Identifier: MIT */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Borrowed bytes, not terminated. An empty span may have a NULL pointer. */
struct span {
	const char *data;
	size_t len;
};

#define SPAN_LITERAL(text) ((struct span){(text), sizeof(text) - 1})

static inline struct span span_of(const char *text)
{
	return (struct span){text, strlen(text)};
}

static inline bool span_equals(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static inline bool span_is(struct span a, const char *text)
{
	return span_equals(a, span_of(text));
}

static inline bool span_ends_with(struct span a, struct span suffix)
{
	return a.len >= suffix.len && (suffix.len == 0 || memcmp(a.data + a.len - suffix.len,
								  suffix.data, suffix.len) == 0);
}

static inline bool span_starts_with(struct span a, struct span prefix)
{
	return a.len >= prefix.len &&
	       (prefix.len == 0 || memcmp(a.data, prefix.data, prefix.len) == 0);
}

#endif
