/* SPDX-License-Identifier: MIT */
#include "base/json_fast.h"

#include <string.h>

#include "base/bytes16.h"
#include "base/json_doc.h"
#include "base/json_utf8.h"

static const unsigned char *plain_text(
	const unsigned char *at, const unsigned char *end, bool with_escapes)
{
	while (at < end) {
		size_t len = 1;
		if (*at >= 0x80) {
			len = utf8_sequence(at, (size_t)(end - at));
		} else if (*at == '\\') {
			len = with_escapes ? json_whole_escape(at, end) : 0;
		} else if (*at == '"' || *at < ' ') {
			len = 0;
		}
		if (len == 0) {
			break;
		}
		at += len;
	}
	return at;
}

/* Writes the character at the beginning of the text, and returns its length; 0 if it has none. */
static size_t put_character(const unsigned char *at, const unsigned char *end, unsigned char **to)
{
	if (*at >= 0x80) {
		size_t len = utf8_sequence(at, (size_t)(end - at));
		*to = mempcpy(*to, at, len);
		return len;
	}
	const struct json_escape *escape = &json_escapes[*at];
	*to = escape->len > 0 ? mempcpy(*to, escape->text, escape->len) : mempcpy(*to, at, 1);
	return 1;
}

static const unsigned char *plain_escape(
	const unsigned char *at, const unsigned char *end, unsigned char **to)
{
	while (at < end) {
		if (end - at >= BYTES16) {
			unsigned int plain = bytes16_copy_plain(*to, at);
			at += plain;
			*to += plain;
			if (plain == BYTES16) {
				continue;
			}
		}
		size_t len = put_character(at, end, to);
		if (len == 0) {
			break;
		}
		at += len;
	}
	return at;
}

static unsigned char *plain_decode(
	const unsigned char *at, const unsigned char *end, unsigned char *to)
{
	while (at < end) {
		if (end - at >= BYTES16) {
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
		struct span text = {(const char *)at, (size_t)(end - at)};
		at += json_decode_escape(text, (char *)to, &len);
		to += len;
	}
	return to;
}

const struct json_fast json_fast_plain = {
	.name = "plain", .text = plain_text, .escape = plain_escape, .decode = plain_decode};

size_t json_fast_list(const struct json_fast *out[JSON_FAST_MAX])
{
	size_t count = 0;
	out[count++] = &json_fast_plain;
#ifdef __x86_64__
	out[count++] = &json_fast_sse2;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
		__builtin_cpu_supports("popcnt")) {
		out[count++] = &json_fast_avx2;
	}
#endif
#ifdef __aarch64__
	out[count++] = &json_fast_neon;
#endif
	return count;
}

const struct json_fast *json_fast_best(void)
{
	const struct json_fast *list[JSON_FAST_MAX];
	return list[json_fast_list(list) - 1];
}
