/* SPDX-License-Identifier: MIT */
#ifndef SYNC_WALK_H
#define SYNC_WALK_H

#include "sync/id_set.h"
#include "sync/members.h"
#include "sync/stat_cache.h"

/* Places that were left as in the base. */
struct walk_left {
	size_t count;
	char first[128]; // path
};

/*
 * One walk over the root: fills a listing with its members, which files are known
 * from the cache, and which have to be read. Reads no content.
 */
struct walk {
	struct members *members;
	const struct stat_cache *cache;
	struct listing *listing; // with its root alone
	int root_fd;
	size_t files;
	uint64_t bytes;
	struct walk_left unreadable, busy;
	struct walk_left refused; // by git
	struct walk_left linked;  // files that have another name in the tree, too (hard links)
	struct walk_left spelled; // what some file system takes for .git, and is in no tree
	struct id_set inodes;     // of files with several names
};

/* ERROR_LIMIT over the request's limits, ERROR_UNAVAILABLE when cancelled, ERROR_SYSTEM. */
bool walk_run(struct walk *walk, struct error *err) ATTR_NODISCARD;

/* What the base has at a path from the root; a mode of 0: nothing. A folder has LISTED_FOLDER. */
void base_lookup(struct store *store, const git_oid *base, const char *path, uint32_t *out_mode,
	git_oid *out_id);

/* The path could not be read: it gets what the base has there, or becomes nothing. */
void walk_keep_base(struct walk *walk, uint32_t index, const char *path);

/* The same of a file that is written to each time it is read; and request->on_busy is told. */
void walk_keep_busy(struct walk *walk, uint32_t index, const char *path);

bool snapshot_is_cancelled(const struct snapshot_request *request, struct error *err);

#endif
