/* SPDX-License-Identifier: MIT */
#ifndef BASE_MASK_H
#define BASE_MASK_H

#include <stdbool.h>

#include "base/span.h"

/*
 * Text that others wrote, on its way to a terminal: control characters but tabs and line ends, and
 * bytes that are no UTF-8, could drive it. They are spelled "^X" or "<9b>".
 */
enum { MASK_SIZE = 5 };

/*
 * Takes the first character out of *text, which is not empty, and returns it, or its spelling in
 * `room`.
 */
struct span mask_next(struct span *text, char room[MASK_SIZE]);

#endif
