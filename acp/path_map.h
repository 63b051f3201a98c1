/* SPDX-License-Identifier: MIT */
#ifndef ACP_PATH_MAP_H
#define ACP_PATH_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/span.h"

/*
 * Maps local directories to directories inside the sandbox. A path belongs to the longest root
 * above it; matching goes by whole components. A path below no root, a relative path, or a path of
 * another system belongs to no root and is not translated.
 */
enum { PATH_MAP_MAX = 256 }; // roots

enum path_direction { PATH_TO_RUNTIME, PATH_TO_LOCAL };

struct path_map_root {
	char *sides[2]; // owned; indexed by the path_direction that produces it; no slash at the
	                // end
};

struct path_map {
	struct path_map_root *roots; // owned
	size_t count;
	bool is_identity; // every root has the same path on both sides
};

void path_map_init(struct path_map *map);
void path_map_finish(struct path_map *map);

/* Adds a root unless it is already there; both paths are absolute. False if the map is full. */
bool path_map_add(struct path_map *map, const char *local, const char *runtime) ATTR_NODISCARD;

/* The same. From now on this root wins against roots that are equally long on one side. */
void path_map_prefer(struct path_map *map, const char *local, const char *runtime);

/* Whether a local directory is itself one of the roots. */
bool path_map_has_local(const struct path_map *map, const char *local);

/*
 * Finds the root of an absolute path: sets how many bytes of the path the root replaces, and with
 * what. False if the path is below no root.
 */
bool path_map_find(const struct path_map *map, enum path_direction direction, struct span path,
	size_t *out_prefix, struct span *out_replacement);

/* The path on the other side; unchanged if it is below no root. Owned by the caller. */
char *path_map_apply(const struct path_map *map, enum path_direction direction, const char *path);

/* The same for a file URI (RFC 8089); the replacement is percent-encoded. */
bool path_map_find_uri(const struct path_map *map, enum path_direction direction, struct span uri,
	size_t *out_prefix, struct buf *out_replacement);

#endif
