/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/naive_glob.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

/* A text as code points; a byte that is not UTF-8 is a character of its own kind. */
struct points {
	size_t count;
	uint32_t list[NAIVE_MAX];
};

static void decode(struct points *points, struct span text)
{
	static const unsigned char bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	FUZZ_CHECK(text.len <= NAIVE_MAX);
	points->count = 0;
	while (text.len > 0) {
		size_t len = utf8_char_length(text);
		uint32_t point = (unsigned char)text.data[0];
		point = len > 0 ? point & bits[len] : point | 0x80000000U;
		for (size_t i = 1; i < len; i++) {
			point = point * 64 + (unsigned char)text.data[i] % 64;
		}
		points->list[points->count++] = point;
		len = len > 0 ? len : 1;
		text = (struct span){text.data + len, text.len - len};
	}
}

/* ---- one component ---- */

struct component {
	struct points pattern;
	struct points text;
	/* By place in the pattern and in the text: 0 not tried, 1 no, 2 yes. */
	char known[NAIVE_MAX + 1][NAIVE_MAX + 1];
};

static uint32_t at(const struct points *points, size_t index)
{
	return index < points->count ? points->list[index] : 0;
}

/* The place of the ] that ends the set; 0 if there is none. */
static size_t find_bracket(const struct points *pattern, size_t from)
{
	size_t i = from + 1;
	if (at(pattern, i) == '!' || at(pattern, i) == '^') {
		i++;
	}
	for (bool first = true; i < pattern->count; first = false) {
		if (pattern->list[i] == ']' && !first) {
			return i;
		}
		i += pattern->list[i] == '\\' && i + 1 < pattern->count ? 2 : 1;
	}
	return 0;
}

static uint32_t take_member(const struct points *pattern, size_t *index)
{
	if (pattern->list[*index] == '\\' && *index + 1 < pattern->count) {
		(*index)++;
	}
	return pattern->list[(*index)++];
}

static bool is_member(const struct points *pattern, size_t from, size_t bracket, uint32_t point)
{
	size_t i = from + 1;
	bool negated = pattern->list[i] == '!' || pattern->list[i] == '^';
	bool found = false;
	for (i += negated; i < bracket;) {
		uint32_t low = take_member(pattern, &i);
		uint32_t high = low;
		if (i + 1 < bracket && pattern->list[i] == '-') {
			i++;
			high = take_member(pattern, &i);
		}
		found = found || (low <= point && point <= high);
	}
	return found != negated;
}

static bool try_component(struct component *component, size_t p, size_t t);

static bool try_anew(struct component *component, size_t p, size_t t)
{
	const struct points *pattern = &component->pattern;
	const struct points *text = &component->text;
	if (p == pattern->count) {
		return t == text->count;
	}
	if (pattern->list[p] == '*') {
		return try_component(component, p + 1, t) ||
		       (t < text->count && try_component(component, p, t + 1));
	}
	if (t == text->count) {
		return false;
	}
	size_t bracket = pattern->list[p] == '[' ? find_bracket(pattern, p) : 0;
	size_t next = p;
	bool fits;
	if (bracket > 0) {
		fits = is_member(pattern, p, bracket, text->list[t]);
		next = bracket + 1;
	} else if (pattern->list[p] == '?') {
		fits = true;
		next = p + 1;
	} else {
		fits = take_member(pattern, &next) == text->list[t];
	}
	return fits && try_component(component, next, t + 1);
}

static bool try_component(struct component *component, size_t p, size_t t)
{
	char *known = &component->known[p][t];
	if (*known == 0) {
		*known = try_anew(component, p, t) ? 2 : 1;
	}
	return *known == 2;
}

static bool is_dots(struct span text)
{
	return span_is(text, ".") || span_is(text, "..");
}

static bool fits_component(struct span pattern, struct span text)
{
	static struct component component;
	if (is_dots(text)) {
		return span_equals(pattern, text);
	}
	decode(&component.pattern, pattern);
	decode(&component.text, text);
	memset(component.known, 0, sizeof(component.known));
	return try_component(&component, 0, 0);
}

/* ---- components ---- */

struct parts {
	size_t count;
	struct span list[NAIVE_MAX + 1];
};

static void divide(struct parts *parts, const char *path)
{
	parts->count = 0;
	for (;;) {
		size_t len = strcspn(path, "/");
		parts->list[parts->count++] = (struct span){path, len};
		if (!path[len]) {
			return;
		}
		path += len + 1;
	}
}

struct paths {
	struct parts pattern;
	struct parts path;
	char known[NAIVE_MAX + 2][NAIVE_MAX + 2];
};

static bool try_path(struct paths *paths, size_t p, size_t t)
{
	char *known = &paths->known[p][t];
	if (*known > 0) {
		return *known == 2;
	}
	bool fits;
	if (p == paths->pattern.count) {
		fits = t == paths->path.count;
	} else if (span_is(paths->pattern.list[p], "**")) {
		fits = try_path(paths, p + 1, t) ||
		       (t < paths->path.count && !is_dots(paths->path.list[t]) &&
			       try_path(paths, p, t + 1));
	} else {
		fits = t < paths->path.count &&
		       fits_component(paths->pattern.list[p], paths->path.list[t]) &&
		       try_path(paths, p + 1, t + 1);
	}
	*known = fits ? 2 : 1;
	return fits;
}

bool naive_glob(const char *pattern, const char *path)
{
	static struct paths paths;
	divide(&paths.pattern, pattern);
	divide(&paths.path, path);
	memset(paths.known, 0, sizeof(paths.known));
	return try_path(&paths, 0, 0);
}

bool naive_glob_anywhere(const char *pattern, const char *path)
{
	while (!naive_glob(pattern, path)) {
		path = strchr(path, '/');
		if (!path) {
			return false;
		}
		path++;
	}
	return true;
}

bool naive_glob_flat(const char *pattern, const char *text)
{
	return fits_component(span_of(pattern), span_of(text));
}
