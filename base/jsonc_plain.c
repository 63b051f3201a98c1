/* SPDX-License-Identifier: MIT */
#include "base/jsonc_plain.h"

#include <string.h>

#include "base/json_check.h"

/*
 * Replaces each comment by tabs, and also the line ends in it. So no line end of the result is
 * inside of a comment. The line end after a // comment stays.
 */
struct blanking {
	struct span text;
	char *plain; // as long as the text
	size_t at;
	size_t last, before_last; // the ends of the last two bytes that are not blank; 0: none
};

size_t jsonc_count_lines(struct span text)
{
	size_t count = 1;
	for (size_t i = 0; i < text.len; i++) {
		count += text.data[i] == '\n';
	}
	return count;
}

static bool fail_at(struct span text, size_t at, const char *what, struct error *err)
{
	return error_set(err, ERROR_PROTOCOL, "line %zu: %s",
		jsonc_count_lines((struct span){text.data, at}), what);
}

static bool blank_comment(struct blanking *blanking, struct error *err)
{
	struct span text = blanking->text;
	size_t end = blanking->at + 2;
	bool is_block = text.data[blanking->at + 1] == '*';
	if (is_block) {
		while (end + 1 < text.len &&
			!(text.data[end] == '*' && text.data[end + 1] == '/')) {
			end++;
		}
		if (end + 1 >= text.len) {
			return fail_at(text, blanking->at, "a comment without an end", err);
		}
		end += 2;
	} else {
		while (end < text.len && text.data[end] != '\n' && text.data[end] != '\r') {
			end++;
		}
	}
	memset(blanking->plain + blanking->at, '\t', end - blanking->at);
	blanking->at = end;
	return true;
}

/* A string without an end is a mistake, which check() reports. */
static void skip_string(struct blanking *blanking)
{
	struct span text = blanking->text;
	size_t at = blanking->at + 1;
	while (at < text.len && text.data[at] != '"' && text.data[at] != '\n') {
		at += text.data[at] == '\\' ? 2 : 1;
	}
	blanking->at = at < text.len ? at + 1 : text.len;
}

static bool is_one_of(char byte, const char *set)
{
	return byte != '\0' && strchr(set, byte) != NULL;
}

/* "[1, ]" has a comma too many; "[, ]" is a mistake. */
static void blank_comma(struct blanking *blanking)
{
	const char *plain = blanking->plain;
	if (blanking->last > 0 && plain[blanking->last - 1] == ',' && blanking->before_last > 0 &&
		!is_one_of(plain[blanking->before_last - 1], "[{,:")) {
		blanking->plain[blanking->last - 1] = ' ';
	}
}

static bool blank_next(struct blanking *blanking, struct error *err)
{
	const char *text = blanking->text.data;
	size_t at = blanking->at;
	char next = at + 1 < blanking->text.len ? text[at + 1] : '\0';
	if (text[at] == '/' && (next == '/' || next == '*')) {
		return blank_comment(blanking, err);
	}
	if (is_one_of(text[at], " \t\r\n")) {
		blanking->at++;
		return true;
	}
	if (is_one_of(text[at], "}]")) {
		blank_comma(blanking);
	}
	if (text[at] == '"') {
		skip_string(blanking);
	} else {
		blanking->at++;
	}
	blanking->before_last = blanking->last;
	blanking->last = blanking->at;
	return true;
}

size_t jsonc_mark_length(struct span text)
{
	const struct span mark = SPAN_LITERAL("\xef\xbb\xbf");
	return span_starts_with(text, mark) ? mark.len : 0;
}

static bool blank(struct span text, char *plain, struct error *err)
{
	struct blanking blanking = {.text = text, .plain = plain, .at = jsonc_mark_length(text)};
	if (text.len > 0) {
		memcpy(plain, text.data, text.len);
		memset(plain, ' ', blanking.at);
	}
	while (blanking.at < text.len) {
		if (!blank_next(&blanking, err)) {
			return false;
		}
	}
	return true;
}

/* Checks the text line by line, so that the error can name the line. */
static bool check(struct span text, struct span plain, bool *out_is_blank, struct error *err)
{
	struct json_check *json = json_check_create(NULL);
	bool ok = true;
	size_t at = 0;
	while (ok && at < plain.len) {
		const char *end = memchr(plain.data + at, '\n', plain.len - at);
		size_t len = end ? (size_t)(end - plain.data) + 1 - at : plain.len - at;
		ok = json_check_feed(json, (struct span){plain.data + at, len}, err);
		at += ok ? len : 0;
	}
	*out_is_blank = ok && json_check_is_blank(json);
	ok = ok && (*out_is_blank || json_check_end(json, err));
	json_check_destroy(json);
	return ok || error_prefix(err, "line %zu", jsonc_count_lines((struct span){text.data, at}));
}

bool jsonc_plain(struct span text, char *plain, bool *out_is_blank, struct error *err)
{
	return blank(text, plain, err) &&
	       check(text, (struct span){plain, text.len}, out_is_blank, err);
}
