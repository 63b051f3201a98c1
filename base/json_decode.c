/* SPDX-License-Identifier: MIT */
#include "base/json_doc.h"

#include "base/bytes16.h"
#include "base/hex.h"
#include "base/json_check_impl.h"
#include "base/json_utf8.h"

/* The unit of the \uXXXX at the beginning of the text; 0 if there is none. */
static uint32_t escaped_unit(struct span text)
{
	if (text.len < 6 || text.data[0] != '\\' || text.data[1] != 'u') {
		return 0;
	}
	uint32_t unit = 0;
	for (size_t i = 2; i < 6; i++) {
		unit = unit << 4 | (uint32_t)hex_digit(text.data[i]);
	}
	return unit;
}

size_t json_decode_escape(struct span text, char out_bytes[UTF8_MAX], size_t *out_len)
{
	if (text.data[1] != 'u') {
		out_bytes[0] = json_escape_values[(unsigned char)text.data[1]];
		*out_len = 1;
		return 2;
	}
	size_t taken = 6;
	uint32_t code_point = escaped_unit(text);
	if (utf16_is_high(code_point)) {
		uint32_t low = escaped_unit((struct span){text.data + 6, text.len - 6});
		if (utf16_is_low(low)) {
			code_point = utf16_join(code_point, low);
			taken = 12;
		}
	}
	if (utf16_is_high(code_point) || utf16_is_low(code_point)) {
		code_point = UTF8_REPLACEMENT;
	}
	*out_len = utf8_encode(code_point, out_bytes);
	return taken;
}

/* The length of the bytes between the quotes of a checked string, once they are decoded. */
static size_t decoded_length(struct span inside)
{
	size_t length = inside.len;
	const char *end = inside.data + inside.len;
	const char *at = inside.data;
	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		char bytes[UTF8_MAX];
		size_t len;
		size_t taken =
			json_decode_escape((struct span){at, (size_t)(end - at)}, bytes, &len);
		length -= taken - len;
		at += taken;
	}
	return length;
}

/* Decodes these bytes into `room`, which they fit; returns the length. */
static size_t decode(struct span inside, char *room, size_t room_len)
{
	const char *end = inside.data + inside.len;
	const char *at = inside.data;
	char *to = room;
	while (at < end) {
		if (end - at >= BYTES16 && room + room_len - to >= BYTES16) {
			unsigned int plain = bytes16_copy_until(to, at, '\\');
			at += plain;
			to += plain;
			if (plain == BYTES16) {
				continue;
			}
		} else if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		size_t len;
		at += json_decode_escape((struct span){at, (size_t)(end - at)}, to, &len);
		to += len;
	}
	return (size_t)(to - room);
}

bool json_decode_string(struct span raw, struct buf *out, struct error *err)
{
	return json_is_string(raw) ? json_decode_checked(raw, out, err)
	                           : error_set(err, ERROR_PROTOCOL, "not a JSON string");
}

bool json_decode_checked(struct span raw, struct buf *out, struct error *err)
{
	if (raw.len < 2 || raw.data[0] != '"') {
		return error_set(err, ERROR_PROTOCOL, "not a JSON string");
	}
	struct span inside = {raw.data + 1, raw.len - 2};
	/* Escapes only make a string longer; only near the maximum the exact length matters. */
	size_t room = inside.len <= out->max - out->len ? inside.len : decoded_length(inside);
	char *to = buf_reserve(out, room, err);
	if (!to) {
		return false;
	}
	buf_commit(out, decode(inside, to, room));
	return true;
}
