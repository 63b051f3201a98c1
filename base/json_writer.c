/* SPDX-License-Identifier: MIT */
#include "base/json_writer.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

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

static void put_escaped(struct json_writer *writer, unsigned char byte)
{
	static const char digits[] = "0123456789abcdef";
	char escape[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 0xf]};
	size_t len = sizeof(escape);
	if (byte == '"' || byte == '\\') {
		escape[1] = (char)byte;
		len = 2;
	} else if (short_escapes[byte] != '\0') {
		escape[1] = short_escapes[byte];
		len = 2;
	}
	put(writer, (struct span){escape, len});
}

#define EACH_OF_EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

/*
 * For eight bytes, the first in the lowest place: sets the highest bit of the first byte that is a
 * control character, a quote, a backslash or not ASCII. Ignore the bits above it. No bit is set if
 * all eight can be written unchanged.
 */
static uint64_t find_care(uint64_t eight)
{
	uint64_t quote = eight ^ EACH_OF_EIGHT('"');
	uint64_t backslash = eight ^ EACH_OF_EIGHT('\\');
	uint64_t found = eight | ((eight - EACH_OF_EIGHT(0x20)) & ~eight) |
	                 ((quote - EACH_OF_EIGHT(1)) & ~quote) |
	                 ((backslash - EACH_OF_EIGHT(1)) & ~backslash);
	return found & EACH_OF_EIGHT(0x80);
}

/* How many of the bytes, from the first, can be written unchanged. */
static size_t plain_length(const unsigned char *bytes, size_t len)
{
	size_t at = 0;
	while (at < len) {
		uint64_t eight;
		if (len - at >= sizeof(eight)) {
			memcpy(&eight, bytes + at, sizeof(eight));
			uint64_t care = find_care(le64toh(eight));
			if (care == 0) {
				at += sizeof(eight);
				continue;
			}
			at += (size_t)__builtin_ctzll(care) / 8;
		}
		if (bytes[at] >= 0x80) {
			size_t sequence = utf8_sequence(bytes + at, len - at);
			if (sequence == 0) {
				break;
			}
			at += sequence;
		} else if (bytes[at] < 0x20 || bytes[at] == '"' || bytes[at] == '\\') {
			break;
		} else {
			at++;
		}
	}
	return at;
}

static void put_string(struct json_writer *writer, struct span text)
{
	const unsigned char *bytes = (const unsigned char *)text.data;
	size_t left = text.len;
	put(writer, SPAN_LITERAL("\""));
	while (left > 0 && !writer->failed) {
		size_t plain = plain_length(bytes, left);
		if (plain > 0) {
			put(writer, (struct span){(const char *)bytes, plain});
			bytes += plain;
			left -= plain;
			continue;
		}
		if (*bytes >= 0x80) {
			put(writer, SPAN_LITERAL("\xef\xbf\xbd"));
		} else {
			put_escaped(writer, *bytes);
		}
		bytes++;
		left--;
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
