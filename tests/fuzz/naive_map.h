/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FUZZ_NAIVE_MAP_H
#define TESTS_FUZZ_NAIVE_MAP_H

#include "acp/path_map.h"

/*
 * Translates whole paths in the simplest way; the fuzz targets compare acp/path_map and acp/rewrite
 * with it.
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

/* The root to which a path of the side `from` belongs, the first one of equal roots; NULL: none. */
const struct naive_root *naive_map_root(
	const struct naive_map *map, enum path_direction from, struct span path);

/* Appends the path on the other side; unchanged if it belongs to no root. */
void naive_map_path(const struct naive_map *map, enum path_direction direction, struct span path,
	struct buf *out);

/*
 * Whether each translated path leads back to its own root: no root of that side lies in another
 * one.
 */
bool naive_map_is_reversible(const struct naive_map *map, enum path_direction direction);

/*
 * Appends a URI's path, decoded. In the URI the path is at [begin, end). False: not a file URI of
 * this machine.
 */
bool naive_uri_decode(struct span uri, struct buf *path, size_t *out_begin, size_t *out_end);

#endif
