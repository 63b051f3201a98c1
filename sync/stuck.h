/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STUCK_H
#define SYNC_STUCK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The paths that an apply left unchanged, and why. If two applies in a row leave a path, a third
 * try would not help: the path is stuck, and becomes a conflict.
 */
enum { STUCK_MAX = 100000 }; // remembered paths

struct stuck_path {
	char *path;      // owned
	const char *why; // static storage
};

struct stuck {
	struct stuck_path *paths; // owned
	size_t count;
	bool is_sorted;
};

/* Adds a path, unless there are STUCK_MAX. `why` is borrowed. */
void stuck_add(struct stuck *stuck, const char *path, const char *why);
void stuck_finish(struct stuck *stuck);

/* Why a path is stuck; NULL if it is not. The first call sorts the paths. */
const char *stuck_find(struct stuck *stuck, const char *path);

/* The paths in both; finish `out`. */
void stuck_intersect(struct stuck *out, struct stuck *a, const struct stuck *b);

#endif
