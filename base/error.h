/* SPDX-License-Identifier: MIT */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

/* What the caller of a failed function should do next. */
enum error_code {
	ERROR_NONE,
	ERROR_SYSTEM,      // the operating system refused: report it
	ERROR_PROTOCOL,    // the peer broke its protocol: refuse the message
	ERROR_LIMIT,       // a documented limit was reached: refuse or close
	ERROR_CONFIG,      // the user has to change a setting or an argument
	ERROR_UNAVAILABLE, // not now or not here: trying again may help
	ERROR_NOT_FOUND,   // the named thing does not exist
	ERROR_DENIED,      // policy or confinement says no
	ERROR_TIMEOUT,     // a named deadline passed
};

enum { ERROR_TEXT_MAX = 5 * 1024 }; // a path of 4 KiB and a message about it

/*
 * An error is a value that the caller owns, usually on its stack. The text is for people: what was
 * being done, on what, then why it failed. A text longer than ERROR_TEXT_MAX is cut, and its end
 * shows that (base/text.h). The reason, if set, is the code in upper snake case that the editor
 * receives (docs/errors.md); it is a string literal.
 *
 * Stage and detail belong to an error that is sent to the editor or an agent (acp/failure.h). The
 * code that sends the error sets them: setting an error clears them.
 */
struct error {
	enum error_code code;
	const char *reason; // static storage; may be NULL
	const char *stage; // the step that failed; static storage; NULL until the error is about to
	                   // be sent
	struct span detail; // the output of a program about it; borrowed until the error is sent;
	                    // usually empty
	char text[ERROR_TEXT_MAX];
};

/* A code that only one part of the program uses, and what its receiver can do about it. */
struct error_reason {
	const char *name;
	bool retryable;   // trying again unchanged may help
	const char *help; // what to do, one line, for the docs
};

/*
 * Sets err and returns false, so that it can end a function. err may be NULL. The old text of err
 * may be among the arguments.
 */
bool error_set(struct error *err, enum error_code code, const char *format, ...) ATTR_PRINTF(3, 4);

/* Like error_set; also sets the code for the editor ("AGENT_NOT_FOUND"). */
bool error_set_reason(struct error *err, enum error_code code, const char *reason,
	const char *format, ...) ATTR_PRINTF(4, 5);
bool error_vset_reason(struct error *err, enum error_code code, const char *reason,
	const char *format, va_list args) ATTR_PRINTF(4, 0);

/*
 * Sets ERROR_SYSTEM; appends ": " and the message of errnum to the text. The caller passes the
 * value of errno that it saved right after the call that failed. If the text is too long, the part
 * before the message is cut.
 */
bool error_set_errno(struct error *err, int errnum, const char *format, ...) ATTR_PRINTF(3, 4);

/* Puts "context: " before the text; each layer does so once. Changes nothing else. */
bool error_prefix(struct error *err, const char *format, ...) ATTR_PRINTF(2, 3);

/* Names the step that failed, before the error is sent. Returns err. */
struct error *error_at(struct error *err, const char *stage);

/*
 * The code for the editor and the log: the reason or, without one, the code that stands for
 * err->code ("TIMEOUT_EXCEEDED").
 */
const char *error_told_code(const struct error *err);
const char *error_code_told(enum error_code code); // for an error without a reason

/* Whether the error has this reason. */
bool error_has_reason(const struct error *err, const char *reason);

#endif
