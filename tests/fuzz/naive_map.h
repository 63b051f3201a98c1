/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_NAIVE_MAP_H
#define TESTS_FUZZ_NAIVE_MAP_H

#include "acp/path_map.h"

/*
 * Paths translated whole, in the plainest way: what acp/path_map and acp/rewrite
 * are compared to.
 */
enum { NAIVE_ROOTS_MAX = 16 };

struct naive_root {
	const char *sides[2]; // by enum path_direction, as in struct path_map_root
};

struct naive_map {
	struct naive_root roots[NAIVE_ROOTS_MAX];
	size_t count;
};

enum path_direction naive_other(enum path_direction direction);

/* The root a path belongs to, `from` being its side; NULL where it has none. The first of equal
 * ones. */
const struct naive_root *naive_map_root(
	const struct naive_map *map, enum path_direction from, struct span path);

/* Appends the path on the other side; as it is where it has no root. */
void naive_map_path(const struct naive_map *map, enum path_direction direction, struct span path,
	struct buf *out);

/* Whether what a path becomes leads to its own root again: none of that side is in another. */
bool naive_map_is_reversible(const struct naive_map *map, enum path_direction direction);

/* Appends a URI's path, decoded; it stands from begin to end. False: no file URI of this machine.
 */
bool naive_uri_decode(struct span uri, struct buf *path, size_t *out_begin, size_t *out_end);

#endif
