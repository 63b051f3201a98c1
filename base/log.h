/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

enum { LOG_LINE_MAX = 4096 }; // bytes of a line with its newline; a longer line is cut

/*
 * Writes one line to stderr, subject first: "session 3f2a: started on devbox". If stderr is not a
 * terminal, a line begins with "<3>" to "<7>" (sd-daemon(3)). Never log a payload or a secret.
 *
 * With LOG_FORMAT_JSON a line is an object instead, with the members time, level, session, code and
 * text (docs/schemas/log.json). The text is that of the other format, without the prefix. The
 * session is the first argument of a format that begins with "session %s"; the code is that of the
 * error given to log_failure.
 *
 * Logging never blocks: if the reader of stderr has stopped reading, lines are dropped and counted,
 * and the count is logged when reading resumes. Control bytes (except tab) and bytes that are not
 * UTF-8 are written as \xNN; a line that is too long ends with "…". errno is kept. Any thread;
 * takes no lock, so it may be used after a fork too.
 *
 * log_init opens a terminal or pipe again for itself, so that it does not set O_NONBLOCK for others
 * who share it. Call it before threads start, and again after file descriptor 2 was replaced. A
 * process without log_init, and a forked child, writes to 2 directly.
 */
void log_init(enum log_level level);
void log_set_level(enum log_level level);    // LOG_LEVEL_INFO from the start
void log_set_format(enum log_format format); // LOG_FORMAT_TEXT from the start
bool log_is_on(enum log_level level);
bool log_format_is(enum log_format format);

void log_error(const char *format, ...) ATTR_PRINTF(1, 2);
void log_warning(const char *format, ...) ATTR_PRINTF(1, 2);
void log_info(const char *format, ...) ATTR_PRINTF(1, 2);
void log_debug(const char *format, ...) ATTR_PRINTF(1, 2);

/* Logs an error, with its code; err->text is among the arguments. */
void log_failure(enum log_level level, const struct error *err, const char *format, ...)
	ATTR_PRINTF(3, 4);

/* Relays a line of another program as "subject: line", without its line ending. */
void log_line(enum log_level level, const char *subject, struct span line);

/* Parses "error", "warning", "info" or "debug"; false for another word. */
bool log_level_parse(const char *word, enum log_level *out_level);

/* Parses "text" or "json"; false for another word. */
bool log_format_parse(const char *word, enum log_format *out_format);

#endif
