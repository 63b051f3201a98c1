/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WALK_H
#define SYNC_WALK_H

#include "base/owner.h"
#include "sync/id_set.h"
#include "sync/members.h"
#include "sync/stat_cache.h"

/* Paths that kept their entries from the base. */
struct walk_left {
	size_t count;
	char first[128]; // path
};

/*
 * Walks once over the root and fills a listing with its members. It finds which files the cache
 * knows and which must be read. Reads no content.
 */
struct walk {
	struct members *members;
	const struct stat_cache *cache;
	struct listing *listing; // has only its root at first
	int root_fd;
	struct owner owner; // reads the files
	size_t files;
	uint64_t bytes;
	struct walk_left unreadable, busy;
	struct walk_left forbidden; // files that the owner may not read; never in a tree
	struct walk_left refused;   // links that git refuses
	struct walk_left linked;    // files with another name in the tree (hard links)
	struct walk_left spelled;   // names that some file system treats as .git; never in a tree
	struct id_set inodes;       // of files with several names
};

/* ERROR_LIMIT over the request's limits, ERROR_UNAVAILABLE when cancelled, ERROR_SYSTEM. */
bool walk_run(struct walk *walk, struct error *err) ATTR_NODISCARD;

/* The base's entry at a path from the root; a mode of 0: none. A folder has LISTED_FOLDER. */
void base_lookup(struct store *store, const git_oid *base, const char *path, uint32_t *out_mode,
	git_oid *out_id);

/* Whether this errno means that the workspace's owner may not read a path; then it is left out. */
bool walk_is_forbidden(struct walk *walk, int errnum, const char *path);

/* The path could not be read: gives it the base's entry, or none. */
void walk_keep_base(struct walk *walk, uint32_t index, const char *path);

/*
 * The same for a file that was written to at each attempt to read it; also calls request->on_busy.
 */
void walk_keep_busy(struct walk *walk, uint32_t index, const char *path);

bool snapshot_is_cancelled(const struct snapshot_request *request, struct error *err);

#endif
