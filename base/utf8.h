/* SPDX-License-Identifier: MIT */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/*
 * The length (1 to 4) of the well-formed UTF-8 character at the beginning of the text. 0 if there
 * is none: empty, cut short, overlong, a surrogate or past U+10FFFF (Unicode 15, table 3-7).
 */
size_t utf8_char_length(struct span text);

/*
 * The length of the text without an incomplete character at its end, so that the text can be cut
 * there. Checks no other bytes.
 */
size_t utf8_whole_length(struct span text);

/*
 * Whether the well-formed character at the beginning of the text is invisible, or changes how the
 * text around it is shown: controls, direction characters, characters of zero width, and unusual
 * spaces.
 */
bool utf8_is_hidden(struct span text);

/*
 * Whether the well-formed character at the beginning of the text can change the order of the
 * following text on the screen: embeddings, overrides and isolates (UAX #9).
 */
bool utf8_is_reordering(struct span text);

/* The code point of that character. */
uint32_t utf8_code_point(struct span text);

#endif
