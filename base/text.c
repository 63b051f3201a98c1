/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/*
 * `size` bytes were written, the last one a NUL. If there is no room for the mark, the text becomes
 * "".
 */
static void mark_cut(char *out, size_t size)
{
	if (size < sizeof(TEXT_CUT)) {
		out[0] = '\0';
		return;
	}
	struct span kept = {out, size - sizeof(TEXT_CUT)};
	memcpy(out + utf8_whole_length(kept), TEXT_CUT, sizeof(TEXT_CUT));
}

/* Writes after `len` bytes of text. */
static bool put(char *out, size_t size, size_t len, const char *format, va_list args)
	ATTR_PRINTF(4, 0);

static bool put(char *out, size_t size, size_t len, const char *format, va_list args)
{
	assert(len < size);
	int more = vsnprintf(out + len, size - len, format, args);
	assert(more >= 0);
	if ((size_t)more < size - len) {
		return true;
	}
	mark_cut(out, size);
	return false;
}

bool text_vformat(char *out, size_t size, const char *format, va_list args)
{
	return put(out, size, 0, format, args);
}

bool text_format(char *out, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	bool is_whole = put(out, size, 0, format, args);
	va_end(args);
	return is_whole;
}

bool text_vappend(char *out, size_t size, const char *format, va_list args)
{
	return put(out, size, strlen(out), format, args);
}

bool text_append(char *out, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	bool is_whole = put(out, size, strlen(out), format, args);
	va_end(args);
	return is_whole;
}

bool text_whole(char *out, size_t size, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int len = vsnprintf(out, size, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= size) {
		out[0] = '\0';
		return false;
	}
	return true;
}

bool text_host_port(char *out, size_t size, const char *host, unsigned port)
{
	bool is_six = strchr(host, ':') != NULL;
	return text_whole(out, size, "%s%s%s:%u", is_six ? "[" : "", host, is_six ? "]" : "", port);
}

const char *text_short(char out[TEXT_SHORT_SIZE], const char *text)
{
	text_format(out, TEXT_SHORT_SIZE, "%s", text);
	return out;
}
