/* SPDX-License-Identifier: MIT */
#include "sync/git/part.h"

#include <stdlib.h>
#include <string.h>

/*
 * In cone mode "/a/" alone means the whole folder. Followed by "!/a/" and "*" and "/", it means
 * only its files, and those folders in it that have lines of their own (git-sparse-checkout(1)).
 */
static bool next_line(struct span text, size_t *at, struct span *out)
{
	if (*at >= text.len) {
		return false;
	}
	const char *line = text.data + *at;
	const char *end = memchr(line, '\n', text.len - *at);
	*out = (struct span){line, end ? (size_t)(end - line) : text.len - *at};
	*at += out->len + 1;
	return true;
}

/* Whether these three, joined, are a line. */
static bool has_line(struct span text, const char *before, struct span folder, const char *after)
{
	struct span line;
	size_t first = strlen(before), last = strlen(after);
	for (size_t at = 0; next_line(text, &at, &line);) {
		if (line.len == first + folder.len + last &&
			memcmp(line.data, before, first) == 0 &&
			memcmp(line.data + first, folder.data, folder.len) == 0 &&
			memcmp(line.data + first + folder.len, after, last) == 0) {
			return true;
		}
	}
	return false;
}

/* Whether the part, or a folder above it, is included as a whole. */
static bool is_whole(struct span text, const char *part)
{
	for (size_t length = strcspn(part, "/");; length += 1 + strcspn(part + length + 1, "/")) {
		struct span folder = {part, length};
		if (has_line(text, "/", folder, "/") && !has_line(text, "!/", folder, "/*/")) {
			return true;
		}
		if (!part[length]) {
			return false;
		}
	}
}

/* Adds the lines that lie inside of the part. */
static bool add_inner(struct span text, const char *part, struct buf *out, struct error *err)
{
	struct span line;
	size_t length = strlen(part);
	bool fits = true;
	for (size_t at = 0; fits && next_line(text, &at, &line);) {
		size_t start = line.len > 0 && line.data[0] == '!' ? 2 : 1;
		struct span rest = {line.data + start, line.len > start ? line.len - start : 0};
		bool is_inner = rest.len > length + 1 && memcmp(rest.data, part, length) == 0 &&
		                rest.data[length] == '/';
		fits = !is_inner ||
		       (buf_append(out, line, err) && buf_append(out, SPAN_LITERAL("\n"), err));
	}
	return fits;
}

bool part_narrow(struct buf *patterns, const char *part, struct error *err)
{
	struct buf own;
	struct span text = buf_span(patterns);
	bool fits;
	buf_init(&own, patterns->max);
	if (text.len == 0 || is_whole(text, part)) {
		fits = buf_append_format(&own, err, "/%s/\n", part);
	} else if (has_line(text, "/", span_of(part), "/")) {
		fits = buf_append_format(&own, err, "/%s/*\n", part) &&
		       add_inner(text, part, &own, err);
	} else { // only files that git does not know yet
		fits = buf_append_format(&own, err, "!/*\n");
	}
	if (fits) {
		buf_clear(patterns);
		fits = buf_append(patterns, buf_span(&own), err);
	}
	buf_finish(&own);
	return fits;
}
