/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STAT_CACHE_H
#define SYNC_STAT_CACHE_H

#include "sync/listing.h"

/*
 * The last listing of a root, kept in the store's folder "cache", mapped, not
 * read. The tree of its root is in the store, and store_prune keeps it
 * there, so every id in it is known. It holds until the machine is started again: objects
 * that were not named by store_keep may be lost with its power.
 */
struct stat_cache {
	struct listing listing; // borrowed from the map; empty: there is none
	void *map;
	size_t map_size;
};

/* No cache, a damaged one, or one that is not for this store leaves it empty. */
void stat_cache_open(struct stat_cache *cache, struct store *store, const char *name);
void stat_cache_close(struct stat_cache *cache);

bool stat_cache_write(struct store *store, const char *name, const struct listing *listing,
	struct error *err) ATTR_NODISCARD;

static inline bool stat_cache_is_empty(const struct stat_cache *cache)
{
	return cache->listing.count == 0;
}

/* The tree that a cache file of the store keeps; false where the file is none. */
bool stat_cache_tree(struct store *store, const char *name, git_oid *out_tree);

#endif
