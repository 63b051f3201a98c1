/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_PRINT_H
#define SYNC_RSYNC_PRINT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * What one look at the runtime root says of all files in it (remote/look.sh). Between two that
 * are the same nothing has changed there that rsync would see: a print has the sizes and times
 * that rsync goes by, and the time of the last change of each inode, which nobody can set.
 */
enum {
	PRINT_SETTLED_S = 3, // file systems have ticks of up to 2 s
	PRINT_CLOCK_S = 2,   // both clocks are read in whole seconds
	PRINT_TEXT_MAX = 256,
};

struct print {
	char sum[65];              // SHA-256, hexadecimal
	char boot[41];             // of the machine there
	long long newest;          // s: the last change of anything, by the file system's clock
	long long now, since_boot; // s: that clock when it was looked, and the other one
	bool is_fine;              // times are finer than seconds
};

/*
 * What the script told; false where that is no print. *out_more: the words behind it, each with
 * its NUL, but for the last.
 */
bool print_read(struct print *print, struct span answer, struct span *out_more) ATTR_NODISCARD;

/*
 * Whether a change after it will show: none was made right before, in the same tick of the clock
 * as one that is still to come.
 */
bool print_is_settled(const struct print *print);

/*
 * Whether what has changed from `before`, which is settled, to `after` can be told by comparing
 * them: it is the same boot, and nobody has set the clock.
 */
bool print_is_comparable(const struct print *before, const struct print *after);
/* Whether that is so, and nothing has. */
bool print_is_same(const struct print *before, const struct print *after);

/* A line without its end, and back. */
void print_format(const struct print *print, char text[PRINT_TEXT_MAX]);
bool print_parse(struct print *print, const char *text) ATTR_NODISCARD;

#endif
