/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sync/rsync/rules.h"

enum { SEGMENTS_MAX = 64, STARS_MAX = 3 };

/*
 * A pattern for rsync, in two forms: rsync treats a backslash as an escape only if the pattern has
 * a wildcard. A literal wildcard is written in brackets: in "\**" rsync would see "**".
 */
struct pattern {
	char wild[2 * PATH_MAX];  // with escapes
	char plain[2 * PATH_MAX]; // without
	size_t wild_len, plain_len;
	bool is_too_long;
};

static void put(char *to, size_t *len, struct span text, bool *is_too_long)
{
	if (*len + text.len >= PATH_MAX) {
		*is_too_long = true;
		return;
	}
	memcpy(to + *len, text.data, text.len);
	*len += text.len;
	to[*len] = '\0';
}

static void put_wild(struct pattern *pattern, struct span text)
{
	put(pattern->wild, &pattern->wild_len, text, &pattern->is_too_long);
	put(pattern->plain, &pattern->plain_len, text, &pattern->is_too_long);
}

static void put_byte(struct pattern *pattern, char byte)
{
	char bracket[] = {'[', byte, ']'};
	char escaped[] = {'\\', byte};
	struct span plain = {&byte, 1};
	struct span wild = byte == '*' || byte == '?' || byte == '['
	                           ? (struct span){bracket, sizeof(bracket)}
	                   : byte == '\\' ? (struct span){escaped, sizeof(escaped)}
	                                  : plain;
	put(pattern->wild, &pattern->wild_len, wild, &pattern->is_too_long);
	put(pattern->plain, &pattern->plain_len, plain, &pattern->is_too_long);
}

static void put_path(struct pattern *pattern, const char *path)
{
	for (; *path; path++) {
		put_byte(pattern, *path);
	}
}

static const char *pattern_text(const struct pattern *pattern)
{
	return strpbrk(pattern->wild, "*[?") ? pattern->wild : pattern->plain;
}

static void pattern_init(struct pattern *pattern)
{
	pattern->wild_len = 0;
	pattern->plain_len = 0;
	pattern->wild[0] = '\0';
	pattern->plain[0] = '\0';
	pattern->is_too_long = false;
}

void rules_add_path(struct rules *rules, bool is_include, const char *path, const char *rest,
	bool is_folder_only)
{
	struct pattern *pattern = mem_alloc(sizeof(*pattern));
	pattern_init(pattern);
	put_byte(pattern, '/');
	put_path(pattern, path);
	put_wild(pattern, span_of(rest));
	if (!pattern->is_too_long) {
		rules_add(rules, is_include, pattern_text(pattern), is_folder_only);
	}
	free(pattern);
}

/* ---- one line in git's syntax ---- */

struct line {
	struct span text;
	bool is_include, is_folder_only, is_rooted;
	struct span segments[SEGMENTS_MAX]; // without the slashes between them
	size_t count;
	size_t stars; // how many segments are "**", except the last
};

/* The end of the bracket that begins at `at`; 0 if it has no end. */
static size_t bracket_length(struct span text, size_t at)
{
	size_t i = at + 1;
	i += i < text.len && (text.data[i] == '!' || text.data[i] == '^');
	for (bool is_first = true; i < text.len; is_first = false) {
		char byte = text.data[i];
		if (byte == ']' && !is_first) {
			return i + 1 - at;
		}
		if (byte == '[' && i + 1 < text.len && text.data[i + 1] == ':') {
			const char *end = memmem(text.data + i + 2, text.len - i - 2, ":]", 2);
			i = end ? (size_t)(end - text.data) + 2 : i + 1;
		} else {
			i += byte == '\\' ? 2 : 1;
		}
	}
	return 0;
}

/* The length of the token at `at`: a byte, an escaped byte or a bracket; 0: it never matches. */
static size_t token_length(struct span text, size_t at)
{
	if (text.data[at] == '[') {
		return bracket_length(text, at);
	}
	return text.data[at] != '\\' ? 1 : at + 1 < text.len ? 2 : 0;
}

static void trim_spaces(struct span *text)
{
	size_t end = 0;
	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == '\\') {
			i++;
			end = i < text->len ? i + 1 : text->len;
		} else if (text->data[i] != ' ') {
			end = i + 1;
		}
	}
	text->len = end;
}

static bool is_stars(struct span segment)
{
	return segment.len == 2 && memcmp(segment.data, "**", 2) == 0;
}

static bool end_segment(struct line *line, size_t from, size_t to)
{
	struct span segment = {line->text.data + from, to - from};
	if (segment.len == 0) {
		return false; // "a//b" matches nothing
	}
	if (line->count > 0 && is_stars(segment) && is_stars(line->segments[line->count - 1])) {
		return true;
	}
	if (line->count == SEGMENTS_MAX) {
		return false;
	}
	line->segments[line->count++] = segment;
	return true;
}

/* False if the line can never match. */
static bool split(struct line *line)
{
	size_t begin = 0;
	for (size_t i = 0; i < line->text.len;) {
		size_t length = token_length(line->text, i);
		if (length == 0) {
			return false;
		}
		if (line->text.data[i] == '/') {
			if (!end_segment(line, begin, i)) {
				return false;
			}
			begin = i + 1;
		}
		i += length;
	}
	if (!end_segment(line, begin, line->text.len)) {
		return false;
	}
	for (size_t i = 0; i + 1 < line->count; i++) {
		line->stars += is_stars(line->segments[i]);
	}
	return true;
}

/* False for an empty line, a comment, and a line that never matches. */
static bool parse(struct line *line, struct span text)
{
	*line = (struct line){0};
	text.len -= text.len > 0 && text.data[text.len - 1] == '\r';
	trim_spaces(&text);
	if (text.len == 0 || text.data[0] == '#') {
		return false;
	}
	line->is_include = text.data[0] == '!';
	text = (struct span){text.data + line->is_include, text.len - line->is_include};
	if (text.len > 0 && text.data[text.len - 1] == '/') {
		line->is_folder_only = true;
		text.len--;
	}
	if (text.len == 0) {
		return false;
	}
	line->is_rooted = memchr(text.data, '/', text.len) != NULL;
	bool has_slash = text.data[0] == '/';
	line->text = (struct span){text.data + has_slash, text.len - has_slash};
	return line->text.len > 0 && split(line);
}

/* ---- in rsync's syntax ---- */

static void put_segment(struct pattern *pattern, struct span segment)
{
	for (size_t i = 0; i < segment.len;) {
		size_t length = token_length(segment, i);
		char byte = segment.data[i];
		if (byte == '*') {
			while (i + length < segment.len && segment.data[i + length] == '*') {
				length++;
			}
			put_wild(pattern, SPAN_LITERAL("*"));
		} else if (byte == '?' || byte == '[') {
			put_wild(pattern, (struct span){segment.data + i, length});
		} else {
			put_byte(pattern, segment.data[i + length - 1]);
		}
		i += length;
	}
}

static void put_folder(struct pattern *pattern, const char *folder)
{
	put_byte(pattern, '/');
	if (*folder) {
		put_path(pattern, folder);
		put_byte(pattern, '/');
	}
}

/* `chosen` says for each "**" whether it stands for folders or for none. */
static void put_segments(struct pattern *pattern, const struct line *line, unsigned chosen)
{
	for (size_t i = 0; i < line->count; i++) {
		bool is_last = i + 1 == line->count;
		if (!line->is_rooted || !is_stars(line->segments[i])) {
			put_segment(pattern, line->segments[i]);
		} else if (is_last) {
			put_wild(pattern, SPAN_LITERAL("**"));
		} else {
			bool stands = chosen & 1;
			chosen >>= 1;
			if (!stands) {
				continue;
			}
			put_wild(pattern, SPAN_LITERAL("**"));
		}
		if (!is_last) {
			put_byte(pattern, '/');
		}
	}
}

static void add_below(struct rules *rules, const char *prefix, const char *wild)
{
	char pattern[2 * PATH_MAX];
	if (text_whole(pattern, sizeof(pattern), "%s%s/**", prefix, wild)) {
		rules_add(rules, false, pattern, false);
	}
}

static void emit(struct rules *rules, const struct line *line, const struct pattern *pattern)
{
	if (pattern->is_too_long) {
		return;
	}
	if (rules->closes_folders && !line->is_include && !rules->has_negation) {
		bool is_rooted = pattern->wild[0] == '/';
		add_below(rules, is_rooted ? "" : "/", pattern->wild);
		if (!is_rooted) {
			add_below(rules, "/**/", pattern->wild);
		}
	}
	rules_add(rules, line->is_include, pattern_text(pattern), line->is_folder_only);
}

static void add_variant(struct rules *rules, const struct line *line, const char *folder,
	unsigned chosen, bool is_deep)
{
	struct pattern *pattern = mem_alloc(sizeof(*pattern));
	pattern_init(pattern);
	if (line->is_rooted || *folder) {
		put_folder(pattern, folder);
	}
	if (is_deep) {
		put_wild(pattern, SPAN_LITERAL("**/"));
	}
	put_segments(pattern, line, chosen);
	emit(rules, line, pattern);
	free(pattern);
}

static void add_line(struct rules *rules, const char *folder, struct span text)
{
	struct line line;
	if (!parse(&line, text)) {
		return;
	}
	if (line.is_rooted && line.stars > STARS_MAX) {
		if (line.is_include) {
			rules_add_path(rules, true, folder, *folder ? "/**" : "**", false);
		}
	} else if (line.is_rooted) {
		for (unsigned chosen = 0; chosen < 1U << line.stars; chosen++) {
			add_variant(rules, &line, folder, chosen, false);
		}
	} else {
		add_variant(rules, &line, folder, 0, false);
		if (*folder) {
			add_variant(rules, &line, folder, 0, true);
		}
	}
	rules->has_negation = rules->has_negation || line.is_include;
}

void rules_add_ignore_file(struct rules *rules, const char *folder, struct span text)
{
	if (span_starts_with(text, SPAN_LITERAL("\xef\xbb\xbf"))) {
		text = (struct span){text.data + 3, text.len - 3};
	}
	while (text.len > 0) {
		size_t end = text.len - (text.data[text.len - 1] == '\n');
		const char *newline = end > 0 ? memrchr(text.data, '\n', end) : NULL;
		size_t begin = newline ? (size_t)(newline - text.data) + 1 : 0;
		struct span line = {text.data + begin, end - begin};
		if (!memchr(line.data, '\0', line.len)) {
			add_line(rules, folder, line);
		}
		text.len = begin;
	}
}

/* The part before the first wildcard is a folder that the pathspec names, or leads to one. */
void rules_add_pathspec(struct rules *rules, bool is_include, const char *pathspec)
{
	/* Rare, and rsync reads it differently; the snapshot applies its excludes. */
	if (strpbrk(pathspec, "[\\") || pathspec[0] == '!' || pathspec[0] == ':') {
		if (is_include) {
			rules_add(rules, true, "/**", false);
		}
		return;
	}
	struct pattern *pattern = mem_alloc(sizeof(*pattern));
	pattern_init(pattern);
	put_byte(pattern, '/');
	for (const char *at = pathspec; *at && strcmp(at, "/") != 0; at++) {
		if (*at == '*') {
			put_wild(pattern, SPAN_LITERAL("**"));
			at += strspn(at, "*") - 1;
		} else if (*at == '?') {
			put_wild(pattern, SPAN_LITERAL("?"));
		} else {
			put_byte(pattern, *at);
		}
	}
	if (!pattern->is_too_long) {
		rules_add(rules, is_include, pattern_text(pattern), false);
		put_wild(pattern, SPAN_LITERAL("/**"));
		rules_add(rules, is_include, pattern->wild, false);
	}
	free(pattern);
}
