/* SPDX-License-Identifier: MIT */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

/*
 * Texts for people in arrays of a fixed size. A text that is too long is cut at a character
 * boundary and ends with TEXT_CUT, so that its reader sees it. What is used - a path, an id, a
 * name - is whole or not there (text_whole).
 */

#define TEXT_CUT "\xe2\x80\xa6" // "…"

/*
 * Formats a text. The arguments may not point into `out`. False where the text was cut; without
 * room for TEXT_CUT it is "" then.
 */
bool text_format(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);
bool text_vformat(char *out, size_t size, const char *format, va_list args) ATTR_PRINTF(3, 0);

/* The same behind the text that is there. */
bool text_append(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);
bool text_vappend(char *out, size_t size, const char *format, va_list args) ATTR_PRINTF(3, 0);

/*
 * Formats what is used. False where it does not fit: `out` is "" then, which is the name of
 * nothing. A caller that knows that it fits (numbers, ids, times) need not look.
 */
bool text_whole(char *out, size_t size, const char *format, ...) ATTR_PRINTF(3, 4);

/*
 * What another program has named, shortened for a text: more of it would hide the rest. Returns
 * `out`.
 */
enum { TEXT_SHORT_SIZE = 304 };
const char *text_short(char out[TEXT_SHORT_SIZE], const char *text);

#endif
