/* SPDX-License-Identifier: MIT */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

/* What the caller of a failed function does next. */
enum error_code {
	ERROR_NONE,
	ERROR_SYSTEM,      // the operating system refused: report it
	ERROR_PROTOCOL,    // the peer broke its protocol: refuse the message
	ERROR_LIMIT,       // a written limit was met: refuse or close
	ERROR_CONFIG,      // the user has to change a setting or an argument
	ERROR_UNAVAILABLE, // not now or not here: trying again can help
	ERROR_NOT_FOUND,   // the named thing does not exist
	ERROR_DENIED,      // policy or confinement says no
	ERROR_TIMEOUT,     // a named deadline passed
};

enum { ERROR_TEXT_MAX = 5 * 1024 }; // a path of 4 KiB, and what is said of it

/*
 * An error is a value the caller owns, usually on its stack. The text is for
 * people: what was being done, on what, then why it failed. A text over
 * ERROR_TEXT_MAX is cut so that its reader sees it (base/text.h). The reason,
 * where one is set, is the upper snake case code the editor is told
 * (docs/errors.md); it is a string literal.
 *
 * Stage and detail are of an error that the editor or an agent is told of
 * (acp/failure.h). Whoever tells it sets them: setting an error clears them.
 */
struct error {
	enum error_code code;
	const char *reason; // static storage; may be NULL
	const char *stage;  // the step that failed; static storage; NULL: it is not told so far
	struct span detail; // what a program said of it; borrowed until it is told; mostly empty
	char text[ERROR_TEXT_MAX];
};

/* A reason that one part of the program has for itself: what whoever is told of it can do. */
struct error_reason {
	const char *name;
	bool retryable;   // trying the same again can help
	const char *help; // what to do, one line, for the docs
};

/*
 * Sets err and returns false, so that it can end a function. err may be NULL,
 * and what is formatted may be its own old text.
 */
bool error_set(struct error *err, enum error_code code, const char *format, ...) ATTR_PRINTF(3, 4);

/* As error_set, and names the code the editor is told ("AGENT_NOT_FOUND"). */
bool error_set_reason(struct error *err, enum error_code code, const char *reason,
	const char *format, ...) ATTR_PRINTF(4, 5);
bool error_vset_reason(struct error *err, enum error_code code, const char *reason,
	const char *format, va_list args) ATTR_PRINTF(4, 0);

/*
 * Sets ERROR_SYSTEM with ": " and the message of errnum after the text. The
 * errno is passed by value, saved by the caller right after the call that
 * failed. A long text is cut before the message.
 */
bool error_set_errno(struct error *err, int errnum, const char *format, ...) ATTR_PRINTF(3, 4);

/*
 * Puts "context: " before the text; each layer does so once. Everything else
 * stays as it is.
 */
bool error_prefix(struct error *err, const char *format, ...) ATTR_PRINTF(2, 3);

/* Names the step that failed, before it is told. Returns err. */
struct error *error_at(struct error *err, const char *stage);

/*
 * The code that the editor and the log are told: the reason or, without one, what stands for
 * the error's own code ("TIMEOUT_EXCEEDED").
 */
const char *error_told_code(const struct error *err);
const char *error_code_told(enum error_code code); // of an error without a reason

/* Whether it has this reason. */
bool error_has_reason(const struct error *err, const char *reason);

#endif
