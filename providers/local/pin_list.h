/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PIN_LIST_H
#define PROVIDERS_LOCAL_PIN_LIST_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/local/cell/plan.h"

/*
 * What lies in a workspace and makes tools outside of a cell run commands: repositories, and the
 * guarded files of the profile (sandbox_request.is_guarded). This knows where they are, and what a
 * cell pins of them; not what becomes of it.
 */
enum pin_kind {
	PIN_REPOSITORY, // .git, a folder or a file; or a bare repository
	PIN_FILE,
	PIN_FOLDER, // all that is in it
	PIN_LINK,   // cannot be pinned: a mount on it would be one on its target
};

struct pin_found {
	enum pin_kind kind;
	char *path; // owned; below the root
	ino_t inode;
	struct timespec changed;
};

enum {
	PINS_MAX = 1000,          // of a workspace; more are ERROR_LIMIT
	PIN_WALK_MAX = 1000000,   // files and folders that are looked at; more are ERROR_LIMIT
	PIN_WALK_DEPTH_MAX = 128, // what lies deeper is not looked at
};

struct pin_rules {
	bool (*is_guarded)(const void *guard, const char *root, const char *path, bool is_link);
	const void *guard; // NULL: only repositories are found
};

struct pin_list {
	struct pin_found *found; // owned; sorted by path
	size_t count;
};

/*
 * Walks a workspace, a folder without links in its path. Folders called node_modules are left out:
 * what is in them runs anyway. Blocks; any thread. Finish it, also after a failure.
 */
bool pin_list_find(struct pin_list *list, const char *root, const struct pin_rules *rules,
	struct error *err) ATTR_NODISCARD;
void pin_list_finish(struct pin_list *list);

/*
 * What cell_show_pinned takes: the root, what is found but links, and the folders on the way there.
 * `writes_git`: repositories are not pinned. The texts belong to `out_texts`, the caller's
 * (words_free).
 */
struct cell_entry *pin_list_entries(const struct pin_list *list, const char *root, bool writes_git,
	size_t *out_count, char ***out_texts);

/*
 * The repository of a worktree whose `.git` is a file, where that lies elsewhere and says itself
 * that this is its worktree: a file in a workspace could name any other one. False: none.
 */
bool pin_list_repository(const char *root, char out[PATH_MAX]);

/* What reads such a file, for people. Static text. */
const char *pin_reader(const struct pin_found *found);

#endif
