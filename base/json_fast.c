/* SPDX-License-Identifier: MIT */
#include "base/json_fast.h"

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

const struct json_fast json_fast_plain = {.name = "plain", .text = plain_text};

size_t json_fast_list(const struct json_fast *out[JSON_FAST_MAX])
{
	size_t count = 0;
	out[count++] = &json_fast_plain;
#ifdef __x86_64__
	out[count++] = &json_fast_sse2;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi")) {
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
