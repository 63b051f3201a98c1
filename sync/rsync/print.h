/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_PRINT_H
#define SYNC_RSYNC_PRINT_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * A print summarises all files in the runtime root at the time of one look (remote/look.sh). If two
 * prints are equal, no file has changed in between in a way that rsync would notice: a print has
 * the sizes and times that rsync compares, and the time of the last change of each inode, which no
 * program can set.
 */
enum {
	PRINT_SETTLED_S = 3, // file systems have ticks of up to 2 s
	PRINT_CLOCK_S = 2,   // both clocks are read in whole seconds
	PRINT_TEXT_MAX = 256,
};

struct print {
	char sum[65];              // SHA-256, hexadecimal
	char boot[41];             // boot id of the machine there
	long long newest;          // s: the last change of any file, by the file system's clock
	long long now, since_boot; // s: that clock at the time of the look, and the time since boot
	bool is_fine;              // times are more exact than seconds
};

/*
 * Reads the script's answer; false if it has no print. *out_more: the words after it; each ends in
 * NUL, except perhaps the last.
 */
bool print_read(struct print *print, struct span answer, struct span *out_more) ATTR_NODISCARD;

/*
 * Whether every change after this print will show in a later print. It may not if it comes in the
 * same tick of the clock as the last change before the print.
 */
bool print_is_settled(const struct print *print);

/*
 * Whether a comparison shows all changes from `before`, which must be settled, to `after`. It does
 * if both are of the same boot and nobody has set the clock in between.
 */
bool print_is_comparable(const struct print *before, const struct print *after);
/* Whether they are comparable and equal. */
bool print_is_same(const struct print *before, const struct print *after);

/* Writes a line without its end, and reads it back. */
void print_format(const struct print *print, char text[PRINT_TEXT_MAX]);
bool print_parse(struct print *print, const char *text) ATTR_NODISCARD;

#endif
