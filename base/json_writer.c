/* SPDX-License-Identifier: MIT */
#include "base/json_writer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes16.h"
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

/* The escapes of RFC 8259 section 7 that are shorter than \u00XX. */
static const char short_escapes[0x20] = {
	['\b'] = 'b',
	['\t'] = 't',
	['\n'] = 'n',
	['\f'] = 'f',
	['\r'] = 'r',
};

enum {
	STRING_PIECE = 256, // bytes of text to escape between two checks of the buffer
	ESCAPED_MAX = 6,    // bytes that one byte can become
	PIECE_ROOM = ESCAPED_MAX * STRING_PIECE + 2 * BYTES16,
};

static char *escape(unsigned char byte, char *to)
{
	static const char digits[] = "0123456789abcdef";
	*to++ = '\\';
	if (byte == '"' || byte == '\\') {
		*to++ = (char)byte;
	} else if (short_escapes[byte] != '\0') {
		*to++ = short_escapes[byte];
	} else {
		memcpy(to, "u00", 3);
		to[3] = digits[byte >> 4];
		to[4] = digits[byte & 0xf];
		to += 5;
	}
	return to;
}

/* Writes the character at the beginning of the text, and returns its length. */
static size_t put_character(struct span text, char **to)
{
	const unsigned char *bytes = (const unsigned char *)text.data;
	if (*bytes < 0x80) {
		bool is_plain = *bytes >= 0x20 && *bytes != '"' && *bytes != '\\';
		*to = is_plain ? mempcpy(*to, bytes, 1) : escape(*bytes, *to);
		return 1;
	}
	size_t sequence = utf8_sequence(bytes, text.len);
	*to = sequence > 0 ? mempcpy(*to, bytes, sequence) : mempcpy(*to, "\xef\xbf\xbd", 3);
	return sequence > 0 ? sequence : 1;
}

/*
 * Writes about STRING_PIECE bytes of text to `to`, which has PIECE_ROOM, and removes them from the
 * text. Returns the end of the output.
 */
static char *put_piece(struct span *text, char *to)
{
	const char *end = text->data + text->len;
	const char *at = text->data;
	const char *until = text->len > STRING_PIECE ? at + STRING_PIECE : end;
	while (at < until) {
		if (end - at >= BYTES16) {
			unsigned int plain = bytes16_copy_plain(to, at);
			at += plain;
			to += plain;
			if (plain == BYTES16) {
				continue;
			}
		}
		at += put_character((struct span){at, (size_t)(end - at)}, &to);
	}
	*text = (struct span){at, (size_t)(end - at)};
	return to;
}

/*
 * Near the buffer's maximum, escapes the text into another buffer first, because it may still fit.
 */
static void put_string(struct json_writer *writer, struct span text)
{
	struct buf *out = writer->out;
	put(writer, SPAN_LITERAL("\""));
	while (text.len > 0 && !writer->failed) {
		char elsewhere[PIECE_ROOM];
		size_t room =
			text.len > STRING_PIECE ? PIECE_ROOM : ESCAPED_MAX * text.len + 2 * BYTES16;
		bool is_near = room > out->max - out->len;
		char *to = is_near ? elsewhere : buf_reserve(out, room, &writer->error);
		size_t len = (size_t)(put_piece(&text, to) - to);
		if (is_near) {
			put(writer, (struct span){elsewhere, len});
		} else {
			buf_commit(out, len);
		}
	}
	put(writer, SPAN_LITERAL("\""));
}

void json_write_key(struct json_writer *writer, const char *key)
{
	assert(writer->depth > 0 && !writer->after_key);
	separate(writer);
	put_string(writer, span_of(key));
	put(writer, SPAN_LITERAL(":"));
	writer->after_key = true;
}

void json_write_string(struct json_writer *writer, struct span text)
{
	begin_value(writer);
	put_string(writer, text);
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
