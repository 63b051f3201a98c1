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

/* Compares the bytes like memcmp, then the lengths. */
static inline int span_compare(struct span a, struct span b)
{
	size_t len = a.len < b.len ? a.len : b.len;
	int order = len > 0 ? memcmp(a.data, b.data, len) : 0;
	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Takes the next word, and the blanks before it, from *rest; returns an empty span at the end. */
static inline struct span span_take_word(struct span *rest, const char *blanks)
{
	size_t begin = 0;
	while (begin < rest->len && rest->data[begin] && strchr(blanks, rest->data[begin])) {
		begin++;
	}
	size_t end = begin;
	while (end < rest->len && !(rest->data[end] && strchr(blanks, rest->data[end]))) {
		end++;
	}
	struct span word = {rest->data + begin, end - begin};
	*rest = (struct span){rest->data + end, rest->len - end};
	return word;
}

/* Takes the next NUL-terminated text from *rest; NULL if there is none. */
static inline const char *span_take_text(struct span *rest)
{
	size_t len = strnlen(rest->data, rest->len);
	const char *text = rest->data;
	if (len == rest->len) {
		return NULL;
	}
	*rest = (struct span){rest->data + len + 1, rest->len - len - 1};
	return text;
}

#endif
