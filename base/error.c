/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/libc.h"
#include "base/text.h"

/* The arguments may point into the error's old text. */
bool error_vset_reason(struct error *err, enum error_code code, const char *reason,
	const char *format, va_list args)
{
	if (!err) {
		return false;
	}
	assert(code != ERROR_NONE);
	char text[ERROR_TEXT_MAX];
	text_vformat(text, sizeof(text), format, args);
	err->code = code;
	err->reason = reason;
	err->stage = NULL;
	err->detail = (struct span){NULL, 0};
	memcpy(err->text, text, strlen(text) + 1);
	return false;
}

bool error_set(struct error *err, enum error_code code, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	error_vset_reason(err, code, NULL, format, args);
	va_end(args);
	return false;
}

bool error_set_reason(
	struct error *err, enum error_code code, const char *reason, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	error_vset_reason(err, code, reason, format, args);
	va_end(args);
	return false;
}

bool error_set_errno(struct error *err, int errnum, const char *format, ...)
{
	if (!err) {
		return false;
	}
	char cause[128];
	const char *description = libc_error_text(errnum);
	if (description) {
		text_format(cause, sizeof(cause), ": %s", description);
	} else {
		snprintf(cause, sizeof(cause), ": error %d", errnum);
	}
	/* The cause is kept whole; a long text before it is cut. */
	char text[ERROR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text) - strlen(cause), format, args);
	va_end(args);
	return error_set(err, ERROR_SYSTEM, "%s%s", text, cause);
}

bool error_prefix(struct error *err, const char *format, ...)
{
	if (!err) {
		return false;
	}
	assert(err->code != ERROR_NONE);
	char text[ERROR_TEXT_MAX];
	va_list args;
	va_start(args, format);
	text_vformat(text, sizeof(text), format, args);
	va_end(args);
	text_append(text, sizeof(text), ": %s", err->text);
	memcpy(err->text, text, strlen(text) + 1);
	return false;
}

struct error *error_at(struct error *err, const char *stage)
{
	err->stage = stage;
	return err;
}

bool error_has_reason(const struct error *err, const char *reason)
{
	return err->reason && strcmp(err->reason, reason) == 0;
}

static const char *const told_codes[] = {
	[ERROR_NONE] = "SYSTEM_ERROR",
	[ERROR_SYSTEM] = "SYSTEM_ERROR",
	[ERROR_PROTOCOL] = "INVALID_MESSAGE",
	[ERROR_LIMIT] = "RESOURCE_LIMIT_EXCEEDED",
	[ERROR_CONFIG] = "CONFIG_INVALID",
	[ERROR_UNAVAILABLE] = "SANDBOX_UNAVAILABLE",
	[ERROR_NOT_FOUND] = "SANDBOX_NOT_FOUND",
	[ERROR_DENIED] = "PERMISSION_DENIED",
	[ERROR_TIMEOUT] = "TIMEOUT_EXCEEDED",
};

const char *error_code_told(enum error_code code)
{
	return told_codes[code];
}

const char *error_told_code(const struct error *err)
{
	return err->reason ? err->reason : error_code_told(err->code);
}
