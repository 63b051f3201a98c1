/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_DIFF_H
#define BROKER_CHAT_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/*
 * The lines from the first to the last difference of two texts. Equal lines between two differences
 * count as removed and added: the diff is correct, but not the shortest.
 */
struct diff_lines {
	struct span removed; // whole lines of the old text
	struct span added;   // whole lines of the new text
};

void diff_find(struct span old_text, struct span new_text, struct diff_lines *out_lines);

/* Removes the first line from *text and returns it without its line end. */
struct span diff_take_line(struct span *text);

#endif
