/* SPDX-License-Identifier: MIT */
#ifndef ACP_PATH_MAP_H
#define ACP_PATH_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/*
 * Which directory here is which directory inside the sandbox. A path belongs to
 * the longest root it is below, matched on component boundaries; a path below
 * no root, a relative one, or one of another system is nobody's and stays as it
 * is.
 */
enum { PATH_MAP_MAX = 256 }; // roots

enum path_direction { PATH_TO_RUNTIME, PATH_TO_LOCAL };

struct path_map_root {
	char *sides[2]; // owned; by enum path_direction: what it becomes; no slash at the end
};

struct path_map {
	struct path_map_root *roots; // owned
	size_t count;
	bool is_identity; // every root is the same on both sides
};

void path_map_init(struct path_map *map);
void path_map_finish(struct path_map *map);

/* Adds a root; both are absolute. False where the map is full. One that is there is not added. */
bool path_map_add(struct path_map *map, const char *local, const char *runtime) ATTR_NODISCARD;

/* The same; of several that are equally long on a side it comes first from now on. */
void path_map_prefer(struct path_map *map, const char *local, const char *runtime);

/* Whether a directory here is one of the roots itself. */
bool path_map_has_local(const struct path_map *map, const char *local);

/*
 * The root an absolute path is below: sets how many bytes of the path it takes
 * and what stands there on the other side. False: none.
 */
bool path_map_find(const struct path_map *map, enum path_direction direction, struct span path,
	size_t *out_prefix, struct span *out_replacement);

/* The path as the other side calls it; one below no root as it is. Owned by the caller. */
char *path_map_apply(const struct path_map *map, enum path_direction direction, const char *path);

/* The same of a file URI (RFC 8089): what takes the place of its first bytes, percent-encoded. */
bool path_map_find_uri(const struct path_map *map, enum path_direction direction, struct span uri,
	size_t *out_prefix, struct buf *out_replacement);

#endif
