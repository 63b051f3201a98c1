/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/*
 * Writes the broker's own JSON into a bounded buffer. The writer places the commas; the caller
 * writes a member as key, then value. After the first failure (the buffer's maximum) the writer
 * ignores all calls, and json_write_end reports it. Strings are escaped according to RFC 8259; each
 * byte that is not UTF-8 becomes U+FFFD. Bytes written before a failure stay in the buffer.
 */
enum { JSON_WRITER_DEPTH_MAX = 32 };

struct json_writer {
	struct buf *out; // borrowed
	struct error error;
	uint32_t has_items; // one bit per level: something was written there
	int depth;
	bool after_key;
	bool failed;
};

void json_write_begin(struct json_writer *writer, struct buf *out);
bool json_write_end(struct json_writer *writer, struct error *err) ATTR_NODISCARD;

void json_write_object(struct json_writer *writer);
void json_write_object_end(struct json_writer *writer);
void json_write_array(struct json_writer *writer);
void json_write_array_end(struct json_writer *writer);
void json_write_key(struct json_writer *writer, const char *key);
void json_write_string(struct json_writer *writer, struct span text);
void json_write_text(struct json_writer *writer, const char *text); // NULL writes null

/*
 * Writes text that must be UTF-8, without reading it twice. Returns how many of its bytes are: all,
 * or those before the first malformed sequence, where the string then ends.
 */
size_t json_write_valid_string(struct json_writer *writer, struct span text);

void json_write_int(struct json_writer *writer, long long number);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
void json_write_raw(struct json_writer *writer, struct span json); // already JSON, as it is

/* A key and its value. */
void json_write_member(struct json_writer *writer, const char *key, const char *text);
void json_write_member_string(struct json_writer *writer, const char *key, struct span text);
void json_write_member_int(struct json_writer *writer, const char *key, long long number);
void json_write_member_bool(struct json_writer *writer, const char *key, bool value);
/* `words` ends with NULL; NULL is an empty array. */
void json_write_member_words(struct json_writer *writer, const char *key, const char *const *words);
void json_write_member_raw(struct json_writer *writer, const char *key, struct span json);

#endif
