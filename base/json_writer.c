/* SPDX-License-Identifier: MIT */
#include "base/json_writer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json_fast.h"
#include "base/json_utf8.h"

void json_write_begin(struct json_writer *writer, struct buf *out)
{
	writer->out = out;
	writer->error.code = ERROR_NONE;
	writer->has_items = 0;
	writer->depth = 0;
	writer->after_key = false;
	writer->failed = false;
}

bool json_write_end(struct json_writer *writer, struct error *err)
{
	assert(writer->depth == 0 && !writer->after_key);
	if (writer->failed && err) {
		*err = writer->error;
	}
	return !writer->failed;
}

static void put(struct json_writer *writer, struct span bytes)
{
	if (!writer->failed && !buf_append(writer->out, bytes, &writer->error)) {
		writer->failed = true;
		error_prefix(&writer->error, "writing JSON");
	}
}

/* Writes a comma if something was written before at this level. */
static void separate(struct json_writer *writer)
{
	if (writer->depth == 0) {
		return;
	}
	uint32_t bit = UINT32_C(1) << (writer->depth - 1);
	if (writer->has_items & bit) {
		put(writer, SPAN_LITERAL(","));
	}
	writer->has_items |= bit;
}

static void begin_value(struct json_writer *writer)
{
	if (writer->after_key) {
		writer->after_key = false;
	} else {
		separate(writer);
	}
}

static void open_level(struct json_writer *writer, struct span bracket)
{
	begin_value(writer);
	assert(writer->depth < JSON_WRITER_DEPTH_MAX);
	writer->has_items &= ~(UINT32_C(1) << writer->depth);
	writer->depth++;
	put(writer, bracket);
}

static void close_level(struct json_writer *writer, struct span bracket)
{
	assert(writer->depth > 0 && !writer->after_key);
	writer->depth--;
	put(writer, bracket);
}

void json_write_object(struct json_writer *writer)
{
	open_level(writer, SPAN_LITERAL("{"));
}

void json_write_object_end(struct json_writer *writer)
{
	close_level(writer, SPAN_LITERAL("}"));
}

void json_write_array(struct json_writer *writer)
{
	open_level(writer, SPAN_LITERAL("["));
}

void json_write_array_end(struct json_writer *writer)
{
	close_level(writer, SPAN_LITERAL("]"));
}

enum {
	STRING_PIECE = 4096, // bytes of text to escape between two checks of the buffer
	PIECE_ROOM = JSON_ESCAPED_MAX * STRING_PIECE + JSON_FAST_BLOCK,
};

enum malformed { MALFORMED_IS_REPLACED, MALFORMED_ENDS };

/*
 * Writes about STRING_PIECE bytes of text to `to`, which has PIECE_ROOM, and removes them from the
 * text. Returns the end of the output.
 */
static char *put_piece(struct span *text, enum malformed malformed, char *to)
{
	static const char replacement[] = "\xef\xbf\xbd"; // U+FFFD
	const unsigned char *at = (const unsigned char *)text->data;
	const unsigned char *end = at + text->len;
	const unsigned char *until = text->len > STRING_PIECE ? at + STRING_PIECE : end;
	unsigned char *out = (unsigned char *)to;
	while ((at = json_fast_best()->escape(at, until, &out)) < until) {
		size_t len = utf8_sequence(at, (size_t)(end - at));
		if (len > 0) { // it continues behind the piece
			out = mempcpy(out, at, len);
			at += len;
			break;
		}
		if (malformed == MALFORMED_ENDS) {
			break;
		}
		out = mempcpy(out, replacement, 3);
		at++;
	}
	*text = (struct span){(const char *)at, (size_t)(end - at)};
	return (char *)out;
}

/*
 * Near the buffer's maximum, escapes the text into another buffer first, because it may still fit.
 * Returns how many bytes of the text were written.
 */
static size_t put_string(struct json_writer *writer, struct span text, enum malformed malformed)
{
	struct buf *out = writer->out;
	const char *begin = text.data;
	bool has_more = text.len > 0;
	put(writer, SPAN_LITERAL("\""));
	while (has_more && !writer->failed) {
		char elsewhere[PIECE_ROOM];
		const char *from = text.data;
		size_t room = text.len > STRING_PIECE
		                      ? PIECE_ROOM
		                      : JSON_ESCAPED_MAX * text.len + JSON_FAST_BLOCK;
		bool is_near = room > out->max - out->len;
		char *to = is_near ? elsewhere : buf_reserve(out, room, &writer->error);
		size_t len = (size_t)(put_piece(&text, malformed, to) - to);
		if (is_near) {
			put(writer, (struct span){elsewhere, len});
		} else {
			buf_commit(out, len);
		}
		has_more = text.len > 0 && text.data != from;
	}
	put(writer, SPAN_LITERAL("\""));
	return (size_t)(text.data - begin);
}

void json_write_key(struct json_writer *writer, const char *key)
{
	assert(writer->depth > 0 && !writer->after_key);
	separate(writer);
	put_string(writer, span_of(key), MALFORMED_IS_REPLACED);
	put(writer, SPAN_LITERAL(":"));
	writer->after_key = true;
}

void json_write_string(struct json_writer *writer, struct span text)
{
	begin_value(writer);
	put_string(writer, text, MALFORMED_IS_REPLACED);
}

size_t json_write_valid_string(struct json_writer *writer, struct span text)
{
	begin_value(writer);
	return put_string(writer, text, MALFORMED_ENDS);
}

void json_write_text(struct json_writer *writer, const char *text)
{
	if (text) {
		json_write_string(writer, span_of(text));
	} else {
		json_write_null(writer);
	}
}

void json_write_int(struct json_writer *writer, long long number)
{
	begin_value(writer);
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", number);
	put(writer, (struct span){digits, (size_t)len});
}

void json_write_bool(struct json_writer *writer, bool value)
{
	json_write_raw(writer, value ? SPAN_LITERAL("true") : SPAN_LITERAL("false"));
}

void json_write_null(struct json_writer *writer)
{
	json_write_raw(writer, SPAN_LITERAL("null"));
}

void json_write_raw(struct json_writer *writer, struct span json)
{
	begin_value(writer);
	put(writer, json);
}

void json_write_member(struct json_writer *writer, const char *key, const char *text)
{
	json_write_key(writer, key);
	json_write_text(writer, text);
}

void json_write_member_string(struct json_writer *writer, const char *key, struct span text)
{
	json_write_key(writer, key);
	json_write_string(writer, text);
}

void json_write_member_int(struct json_writer *writer, const char *key, long long number)
{
	json_write_key(writer, key);
	json_write_int(writer, number);
}

void json_write_member_bool(struct json_writer *writer, const char *key, bool value)
{
	json_write_key(writer, key);
	json_write_bool(writer, value);
}

void json_write_member_words(struct json_writer *writer, const char *key, const char *const *words)
{
	json_write_key(writer, key);
	json_write_array(writer);
	for (; words && *words; words++) {
		json_write_text(writer, *words);
	}
	json_write_array_end(writer);
}

void json_write_member_raw(struct json_writer *writer, const char *key, struct span json)
{
	json_write_key(writer, key);
	json_write_raw(writer, json);
}
