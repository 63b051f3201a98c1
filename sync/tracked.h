/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TRACKED_H
#define SYNC_TRACKED_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "sync/store.h"
#include "base/user_repository.h"

/*
 * The paths that a repository of the user tracks, from its work tree's root. The first question
 * reads the index: by libgit2 or, if that fails, by the program git. If that fails too, no path
 * counts as tracked.
 */
enum tracked_source {
	TRACKED_UNREAD,
	TRACKED_INDEX,
	TRACKED_PROGRAM, // libgit2 could not read the index, git could
	TRACKED_NOTHING, // neither could
	TRACKED_NONE,    // there is no repository, or it has no index
};

struct tracked {
	struct store *store;
	struct user_repository repository;
	const char *home; // borrowed; may be NULL
	enum tracked_source source;
	git_index *index;   // TRACKED_INDEX
	struct buf listed;  // TRACKED_PROGRAM: terminated paths
	const char **paths; // TRACKED_PROGRAM: the paths in `listed`, sorted
	size_t count;
};

void tracked_init(struct tracked *tracked, struct store *store,
	const struct user_repository *repository, const char *home);
void tracked_finish(struct tracked *tracked);

bool tracked_has(struct tracked *tracked, const char *path);
/* Whether a path below the directory is tracked, or the directory itself is a submodule. */
bool tracked_has_below(struct tracked *tracked, const char *folder);

/*
 * tracked_program.c: fills `listed` by asking the program git. Git gets copies of the index files
 * in a folder of the store, because it would change the times of a split or sparse index even when
 * it only reads. The user's configuration does not apply there.
 */
bool tracked_ask_program(struct tracked *tracked, bool is_sha256, struct error *err) ATTR_NODISCARD;

#endif
