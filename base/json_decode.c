/* SPDX-License-Identifier: MIT */
#include "base/json_doc.h"

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

/*
 * Decodes the bytes between the quotes of a checked string. Returns the length; writes to `to`
 * unless it is NULL.
 */
static size_t decode(struct span inside, char *to)
{
	size_t length = 0;
	while (inside.len > 0) {
		const char *escape = memchr(inside.data, '\\', inside.len);
		size_t taken = escape ? (size_t)(escape - inside.data) : inside.len;
		const char *bytes = inside.data;
		char decoded[UTF8_MAX];
		size_t len = taken;
		if (taken == 0) {
			taken = json_decode_escape(inside, decoded, &len);
			bytes = decoded;
		}
		if (to) {
			memcpy(to + length, bytes, len);
		}
		length += len;
		inside = (struct span){inside.data + taken, inside.len - taken};
	}
	return length;
}

bool json_decode_string(struct span raw, struct buf *out, struct error *err)
{
	if (!json_is_string(raw)) {
		return error_set(err, ERROR_PROTOCOL, "not a JSON string");
	}
	struct span inside = {raw.data + 1, raw.len - 2};
	size_t length = decode(inside, NULL);
	char *to = buf_reserve(out, length, err);
	if (!to) {
		return false;
	}
	buf_commit(out, decode(inside, to));
	return true;
}
