/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STAT_CACHE_H
#define SYNC_STAT_CACHE_H

#include "sync/listing.h"

/*
 * The last listing of a root, in the store's folder "cache". It is memory-mapped. The tree of its
 * root is in the store, and store_prune keeps it, so that every id in the cache exists. The cache
 * is valid until the machine restarts: a power failure may lose objects that store_keep has not
 * named.
 */
struct stat_cache {
	struct listing listing; // borrowed from the map; empty: no cache
	void *map;
	size_t map_size;
};

/* The cache is empty if there is none, it is damaged, or it belongs to another store. */
void stat_cache_open(struct stat_cache *cache, struct store *store, const char *name);
void stat_cache_close(struct stat_cache *cache);

bool stat_cache_write(struct store *store, const char *name, const struct listing *listing,
	struct error *err) ATTR_NODISCARD;

static inline bool stat_cache_is_empty(const struct stat_cache *cache)
{
	return cache->listing.count == 0;
}

/* The tree that a cache file refers to; false if the file is not a cache. */
bool stat_cache_tree(struct store *store, const char *name, git_oid *out_tree);

#endif
