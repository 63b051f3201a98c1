/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/libc.h"
#include "base/utf8.h"

/* Ends a text after `max` bytes at the most, where its last whole character ends. */
static void cut(char *text, size_t max)
{
	size_t len = strlen(text);
	if (len >= max) {
		text[utf8_whole_length((struct span){text, max})] = '\0';
	}
}

/* The arguments may point into the old text. */
static void set_text(struct error *err, enum error_code code, const char *reason,
	const char *format, va_list args) ATTR_PRINTF(4, 0);

static void set_text(struct error *err, enum error_code code, const char *reason,
	const char *format, va_list args)
{
	assert(code != ERROR_NONE);
	char text[ERROR_TEXT_MAX] = "";
	vsnprintf(text, sizeof(text), format, args);
	cut(text, sizeof(text) - 1);
	err->code = code;
	err->reason = reason;
	memcpy(err->text, text, strlen(text) + 1);
}

bool error_set(struct error *err, enum error_code code, const char *format, ...)
{
	if (!err) {
		return false;
	}
	va_list args;
	va_start(args, format);
	set_text(err, code, NULL, format, args);
	va_end(args);
	return false;
}

bool error_set_reason(
	struct error *err, enum error_code code, const char *reason, const char *format, ...)
{
	if (!err) {
		return false;
	}
	va_list args;
	va_start(args, format);
	set_text(err, code, reason, format, args);
	va_end(args);
	return false;
}

bool error_set_errno(struct error *err, int errnum, const char *format, ...)
{
	if (!err) {
		return false;
	}
	va_list args;
	va_start(args, format);
	set_text(err, ERROR_SYSTEM, NULL, format, args);
	va_end(args);
	/* The cause is kept whole, a long text before it loses its end. */
	char cause[128];
	const char *description = libc_error_text(errnum);
	if (description) {
		snprintf(cause, sizeof(cause), ": %s", description);
	} else {
		snprintf(cause, sizeof(cause), ": error %d", errnum);
	}
	cut(err->text, sizeof(err->text) - 1 - strlen(cause));
	memcpy(err->text + strlen(err->text), cause, strlen(cause) + 1);
	return false;
}

bool error_prefix(struct error *err, const char *format, ...)
{
	if (!err) {
		return false;
	}
	assert(err->code != ERROR_NONE);
	char old[ERROR_TEXT_MAX];
	memcpy(old, err->text, strlen(err->text) + 1);
	va_list args;
	va_start(args, format);
	set_text(err, err->code, err->reason, format, args);
	va_end(args);
	size_t len = strlen(err->text);
	snprintf(err->text + len, sizeof(err->text) - len, ": %s", old);
	cut(err->text, sizeof(err->text) - 1);
	return false;
}

bool error_has_reason(const struct error *err, const char *reason)
{
	return err->reason && strcmp(err->reason, reason) == 0;
}
