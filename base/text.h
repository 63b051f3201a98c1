/* SPDX-License-Identifier: MIT */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/*
 * Texts for people in arrays of a fixed size. A text that is too long is cut at a character
 * boundary and ends with TEXT_CUT, so that its reader sees it. A text for the program (a path, an
 * id, a name) is either whole or empty (text_whole).
 */

#define TEXT_CUT "\xe2\x80\xa6" // "…"

/*
 * Formats a text. The arguments may not point into `out`. False if the text was cut; `out` is "" if
 * there is no room even for TEXT_CUT.
 */
bool text_format(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);
bool text_vformat(char *out, size_t size, const char *format, va_list args) ATTR_PRINTF(3, 0);

/* Appends to the text in `out`. */
bool text_append(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);
bool text_vappend(char *out, size_t size, const char *format, va_list args) ATTR_PRINTF(3, 0);

/*
 * Formats a text that the program uses. Returns false and sets `out` to "" if it does not fit; ""
 * names nothing. A caller that knows that it fits (numbers, ids, times) may ignore the result.
 */
bool text_whole(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);

/* Writes "host:port", or "[host]:port" if the host is an IPv6 address. Otherwise as text_whole. */
bool text_host_port(char *out, size_t size, const char *host, unsigned port);

/*
 * A name from another program, shortened for a text, so that it does not hide the rest. Returns
 * `out`.
 */
enum { TEXT_SHORT_SIZE = 304 };
const char *text_short(char out[TEXT_SHORT_SIZE], const char *text);

#endif
