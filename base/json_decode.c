/* SPDX-License-Identifier: MIT */
#include "base/json_doc.h"

#include <string.h>

#include "base/hex.h"
#include "base/json_fast.h"
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

/* Decodes these bytes. The caller has made room for the result alone: nothing is written behind it.
 */
static void decode_exactly(struct span inside, char *to)
{
	while (inside.len > 0) {
		const char *stop = memchr(inside.data, '\\', inside.len);
		size_t taken = stop ? (size_t)(stop - inside.data) : inside.len;
		to = mempcpy(to, inside.data, taken);
		inside = (struct span){inside.data + taken, inside.len - taken};
		if (stop) {
			char bytes[UTF8_MAX];
			size_t len;
			taken = json_decode_escape(inside, bytes, &len);
			to = mempcpy(to, bytes, len);
			inside = (struct span){inside.data + taken, inside.len - taken};
		}
	}
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
	if (inside.len > out->max - out->len) { // escapes are longer than what they mean
		size_t length = decoded_length(inside);
		char *to = buf_reserve(out, length, err);
		if (to) {
			decode_exactly(inside, to);
			buf_commit(out, length);
		}
		return to != NULL;
	}
	unsigned char *to = (unsigned char *)buf_reserve(out, inside.len, err);
	const unsigned char *from = (const unsigned char *)inside.data;
	if (!to) {
		return false;
	}
	buf_commit(out, (size_t)(json_fast_best()->decode(from, from + inside.len, to) - to));
	return true;
}
