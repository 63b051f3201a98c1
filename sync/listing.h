/* SPDX-License-Identifier: MIT */
#ifndef SYNC_LISTING_H
#define SYNC_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "sync/store.h"

/*
 * A directory and all its members. The children of a folder lie side by side, in the order of git's
 * trees, after the folder. A snapshot fills a listing. The stat cache is a listing on disk, which
 * only the same program on the same machine can read.
 */
enum { LISTED_FOLDER = 0040000, LISTED_NONE = UINT32_MAX };

enum listed_flag {
	LISTED_TRUSTED = 1, // the id holds as long as the stat fields do
	LISTED_KNOWN = 2,   // the id is known; its content need not be read
	LISTED_FIXED = 4,   // a folder that could not be read: the id is from the base
	LISTED_BASED = 8,   // a folder that the base has; during the walk, id is from the base
	LISTED_IGNORED = 16,
	LISTED_NOT_IGNORED = 32, // if neither flag is set: not checked yet
};

struct listed {
	uint64_t size, inode, device;
	int64_t mtime_ns, ctime_ns;
	git_oid id;     // of a folder: its tree
	uint32_t name;  // offset in `names`, NUL-terminated
	uint32_t mode;  // enum entry_mode or LISTED_FOLDER
	uint32_t first; // a folder's children: items[first] to items[first + children - 1]
	uint32_t children;
	uint32_t cached; // index of the same entry in the cache's listing, or LISTED_NONE
	uint16_t name_length;
	uint16_t flags;
	uint32_t parent;
};

struct listing {
	struct listed *items; // the first is the root, without a name
	uint32_t count, capacity;
	char *names;
	size_t names_length, names_capacity;
};

void listing_init(struct listing *listing); // with the root
void listing_finish(struct listing *listing);

/* Appends an entry as the last child of `parent`, and returns its index. */
uint32_t listing_add(struct listing *listing, uint32_t parent, struct span name, uint32_t mode);

static inline const char *listing_name(const struct listing *listing, uint32_t index)
{
	return listing->names + listing->items[index].name;
}

/* Writes the path below the root to `path`; false if it does not fit. */
bool listing_path(const struct listing *listing, uint32_t index, char *path, size_t size);

/* Whether the stat fields match the status. */
bool listed_matches(const struct listed *listed, const struct stat *status);
void listed_set_status(struct listed *listed, const struct stat *status);

/* Compares names like git's trees: a folder's name as if it ended in a slash. */
int listing_compare_names(const char *a, bool a_is_folder, const char *b, bool b_is_folder);

#endif
