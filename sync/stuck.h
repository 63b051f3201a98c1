/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STUCK_H
#define SYNC_STUCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The paths that an apply has left as they are, and why. What two applies in a row have
 * left will not go away by itself: it is stuck, and becomes a conflict.
 */
enum { STUCK_MAX = 100000 }; // paths that are remembered

struct stuck_path {
	char *path;      // owned
	const char *why; // static storage
};

struct stuck {
	struct stuck_path *paths; // owned
	size_t count;
	bool is_sorted;
};

/* Those beyond STUCK_MAX are not taken. `why` stays where it is. */
void stuck_add(struct stuck *stuck, const char *path, const char *why);
void stuck_finish(struct stuck *stuck);

/* Why a path is stuck; NULL: it is not. The paths are put in order by the first call. */
const char *stuck_find(struct stuck *stuck, const char *path);

/* What is in both; `out` is to be finished. */
void stuck_intersect(struct stuck *out, struct stuck *a, const struct stuck *b);

#endif
