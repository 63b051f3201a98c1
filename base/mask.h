/* SPDX-License-Identifier: MIT */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>

#include "base/span.h"

/*
 * Text that others wrote, on its way to a terminal: control characters but tabs and line ends, and
 * bytes that are no UTF-8, could drive it, and others could show it in another order. They are
 * spelled "^X", "<9b>" or "<U+202E>".
 */
enum { MASK_SIZE = 9 };

/*
 * Takes the first character out of *text, which is not empty, and returns it, or its spelling in
 * `room`.
 */
struct span mask_next(struct span *text, char room[MASK_SIZE]);

/* All of the text as one line, with a blank for a tab and a line end. The caller frees it. */
char *mask_line(struct span text);

#endif
