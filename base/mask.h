/* SPDX-License-Identifier: MIT */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>

#include "base/span.h"

/*
 * Makes foreign text safe to print on a terminal. Control characters (except tabs and line ends)
 * and bytes that are not UTF-8 could control the terminal, and some characters could change the
 * order in which text appears. They are spelled "^X", "<9b>" or "<U+202E>".
 */
enum { MASK_SIZE = 9 };

/*
 * Removes the first character from *text, which is not empty. Returns it, or its spelling in
 * `room`.
 */
struct span mask_next(struct span *text, char room[MASK_SIZE]);

/* All of the text as one line; a tab or a line end becomes a space. The caller frees it. */
char *mask_line(struct span text);

#endif
