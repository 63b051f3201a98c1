/* SPDX-License-Identifier: MIT */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * The length (1 to 4) of the well-formed UTF-8 character that text begins with,
 * 0 where it begins with none: empty, cut short, overlong, a surrogate or past
 * U+10FFFF (Unicode 15, table 3-7).
 */
size_t utf8_char_length(struct span text);

/*
 * The length of text without a character that was cut short at its end: the
 * place to cut at. Other bad bytes are left for someone else to judge.
 */
size_t utf8_whole_length(struct span text);

/*
 * Whether the well-formed character that text begins with shows nothing, or changes how what is
 * around it is shown: controls, characters of direction, of no width, blank ones that are no blank.
 */
bool utf8_is_hidden(struct span text);

/*
 * Whether the well-formed character that text begins with can put what follows into another order
 * on the screen: embeddings, overrides and isolates (UAX #9).
 */
bool utf8_is_reordering(struct span text);

/* The code point of that character. */
uint32_t utf8_code_point(struct span text);

#endif
