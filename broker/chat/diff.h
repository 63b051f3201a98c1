/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_DIFF_H
#define BROKER_CHAT_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/*
 * The lines in which two texts differ: from the first that differs to the last. Lines that are
 * the same in between are given as removed and added, which is right, if not the shortest.
 */
struct diff_lines {
	struct span removed; // whole lines of the old text
	struct span added;   // whole lines of the new text
};

void diff_find(struct span old_text, struct span new_text, struct diff_lines *out_lines);

/* Takes the first line out of *text, without its end. */
struct span diff_take_line(struct span *text);

#endif
