/* SPDX-License-Identifier: MIT */
#include "base/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"
#include "base/utf8.h"

enum { NOT_UTF8 = 0x110000 }; // plus the byte, so that bad bytes match only themselves

/* ---- characters ---- */

/* Returns the character at *at, and moves *at behind it. */
static uint32_t next_char(struct span text, size_t *at)
{
	static const unsigned char lead_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	struct span rest = {text.data + *at, text.len - *at};
	size_t len = utf8_char_length(rest);
	if (len == 0) {
		return NOT_UTF8 + (unsigned char)text.data[(*at)++];
	}
	uint32_t character = (unsigned char)rest.data[0] & lead_bits[len];
	for (size_t i = 1; i < len; i++) {
		character = character << 6 | ((unsigned char)rest.data[i] & 0x3f);
	}
	*at += len;
	return character;
}

/* A member of a set: one character, or the character after a \ . */
static uint32_t next_member(struct span pattern, size_t *at)
{
	uint32_t character = next_char(pattern, at);
	return character == '\\' && *at < pattern.len ? next_char(pattern, at) : character;
}

/* The end, behind the ']', of the set that begins at `at` (its '['); 0 if it has no end. */
static size_t set_end(struct span pattern, size_t at)
{
	at++;
	if (at < pattern.len && (pattern.data[at] == '!' || pattern.data[at] == '^')) {
		at++;
	}
	bool first = true; // a ']' here is a member
	while (at < pattern.len && (first || pattern.data[at] != ']')) {
		next_member(pattern, &at);
		first = false;
	}
	return at < pattern.len ? at + 1 : 0;
}

static bool set_has(struct span pattern, size_t at, size_t end, uint32_t character)
{
	at++;
	bool negated = pattern.data[at] == '!' || pattern.data[at] == '^';
	at += negated;
	bool found = false;
	while (at < end - 1) {
		uint32_t low = next_member(pattern, &at);
		uint32_t high = low;
		if (at + 1 < end - 1 && pattern.data[at] == '-') {
			at++;
			high = next_member(pattern, &at);
		}
		found = found || (character >= low && character <= high);
	}
	return found != negated;
}

/* Matches one character other than a star; on success both positions move behind it. */
static bool match_one(struct span pattern, size_t *pattern_at, struct span text, size_t *text_at)
{
	size_t in_pattern = *pattern_at;
	size_t in_text = *text_at;
	uint32_t character = next_char(text, &in_text);
	size_t end = pattern.data[in_pattern] == '[' ? set_end(pattern, in_pattern) : 0;
	bool matches;
	if (end > 0) {
		matches = set_has(pattern, in_pattern, end, character);
		in_pattern = end;
	} else if (pattern.data[in_pattern] == '?') {
		in_pattern++;
		matches = true;
	} else {
		matches = next_member(pattern, &in_pattern) == character;
	}
	if (matches) {
		*pattern_at = in_pattern;
		*text_at = in_text;
	}
	return matches;
}

/* ---- one component ---- */

static bool is_dots(struct span component)
{
	return span_is(component, ".") || span_is(component, "..");
}

/* It is enough to go back to the last star: an earlier one could only take less. */
static bool match_component(struct span pattern, struct span text)
{
	if (is_dots(text)) {
		return span_equals(pattern, text);
	}
	size_t pattern_at = 0;
	size_t text_at = 0;
	bool has_star = false;
	size_t after_star = 0;
	size_t star_text = 0;
	while (text_at < text.len) {
		if (pattern_at < pattern.len && pattern.data[pattern_at] == '*') {
			has_star = true;
			after_star = ++pattern_at;
			star_text = text_at;
		} else if (pattern_at < pattern.len &&
			   match_one(pattern, &pattern_at, text, &text_at)) {
			continue;
		} else if (has_star) {
			next_char(text, &star_text);
			text_at = star_text;
			pattern_at = after_star;
		} else {
			return false;
		}
	}
	while (pattern_at < pattern.len && pattern.data[pattern_at] == '*') {
		pattern_at++;
	}
	return pattern_at == pattern.len;
}

/* ---- components ---- */

/* Iterates over the components of a path; `at` is NULL behind the last. */
struct walk {
	const char *at;
	struct span component;
};

static void walk_read(struct walk *walk)
{
	walk->component = (struct span){walk->at, walk->at ? strcspn(walk->at, "/") : 0};
}

static struct walk walk_begin(const char *path)
{
	struct walk walk = {.at = path};
	walk_read(&walk);
	return walk;
}

static void walk_next(struct walk *walk)
{
	const char *end = walk->at + walk->component.len;
	walk->at = *end ? end + 1 : NULL;
	walk_read(walk);
}

bool glob_match(const char *pattern, const char *path)
{
	struct walk want = walk_begin(pattern);
	struct walk have = walk_begin(path);
	struct walk after_star = {0};
	struct walk star_have = {0};
	while (have.at) {
		if (want.at && span_is(want.component, "**")) {
			walk_next(&want);
			after_star = want;
			star_have = have;
		} else if (want.at && match_component(want.component, have.component)) {
			walk_next(&want);
			walk_next(&have);
		} else if (star_have.at && !is_dots(star_have.component)) {
			walk_next(&star_have);
			have = star_have;
			want = after_star;
		} else {
			return false;
		}
	}
	while (want.at && span_is(want.component, "**")) {
		walk_next(&want);
	}
	return !want.at;
}

bool glob_match_anywhere(const char *pattern, const char *path)
{
	for (struct walk walk = walk_begin(path); walk.at; walk_next(&walk)) {
		if (glob_match(pattern, walk.at)) {
			return true;
		}
	}
	return false;
}

bool glob_match_flat(const char *pattern, const char *text)
{
	return match_component(span_of(pattern), span_of(text));
}

/* ---- checking ---- */

static bool check_component(struct span component, struct error *err)
{
	for (size_t at = 0; at < component.len;) {
		char byte = component.data[at];
		if (byte == '\\' && at + 1 == component.len) {
			return error_set(err, ERROR_CONFIG, "expected a character after \\");
		}
		if (byte == '[') {
			size_t end = set_end(component, at);
			if (end == 0) {
				return error_set(err, ERROR_CONFIG, "expected a ] after [");
			}
			at = end;
			continue;
		}
		if (byte == '*' && component.len > 2 && at + 1 < component.len &&
			component.data[at + 1] == '*') {
			return error_set(err, ERROR_CONFIG,
				"expected ** alone between slashes, got \"%.*s\"",
				(int)component.len, component.data);
		}
		next_member(component, &at);
	}
	return true;
}

bool glob_check(const char *pattern, struct error *err)
{
	for (struct walk walk = walk_begin(pattern); walk.at; walk_next(&walk)) {
		if (!check_component(walk.component, err)) {
			return false;
		}
	}
	return true;
}

bool glob_check_path(const char *pattern, struct error *err)
{
	for (struct walk walk = walk_begin(pattern); walk.at; walk_next(&walk)) {
		bool is_root = walk.at == pattern && pattern[0] == '/';
		if (walk.component.len == 0 && !is_root) {
			return error_set(err, ERROR_CONFIG,
				"expected a path without // and without / at its end (a folder's "
				"content is FOLDER/**), got \"%s\"",
				pattern);
		}
		if (is_dots(walk.component)) {
			return error_set(err, ERROR_CONFIG,
				"expected a path without . and .. parts, got \"%s\"", pattern);
		}
	}
	if (pattern[0] == '~') {
		return error_set(err, ERROR_CONFIG,
			"expected a path from / or from the session's directory; ~ is not "
			"expanded, got \"%s\"",
			pattern);
	}
	return glob_check(pattern, err);
}
