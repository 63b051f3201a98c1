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
#include "providers/local/pin_place.h"

/*
 * Finds the files in a workspace that make tools outside of a cell run commands: repositories, and
 * the profile's guarded files (sandbox_request.is_guarded). Knows where they are and how a cell
 * pins them, but not whether they change.
 */
enum pin_kind {
	PIN_REPOSITORY, // .git (a folder or a file), or a bare repository
	PIN_FILE,
	PIN_FOLDER, // with everything in it
	PIN_LINK,   // cannot be pinned: a mount on it would cover its target
};

struct pin_found {
	enum pin_kind kind;
	char *path;         // owned; below the root
	const char *reader; // who reads it, for people; static; NULL: its path says so
	ino_t inode;
	struct timespec born; // zero: the file system does not know
	struct timespec changed;
	bool is_loose; // of pin_news.h: another file has taken the place of the pinned one
};

enum {
	PINS_MAX = 1000,          // per workspace; more fail with ERROR_LIMIT
	PIN_WALK_MAX = 1000000,   // files and folders visited; more fail with ERROR_LIMIT
	PIN_WALK_DEPTH_MAX = 128, // deeper folders are not visited
};

struct pin_rules {
	bool (*is_guarded)(const void *guard, const char *root, const char *path, bool is_link);
	const void *guard; // NULL: only repositories are found
	/* Without links; NULL: the files that the user's git reads are not found. */
	const char *home;
};

struct pin_list {
	struct pin_found *found; // owned; sorted by path
	size_t count;
};

/*
 * Walks a workspace, whose path must contain no links. Skips folders called node_modules, because
 * programs run their content anyway. Blocks; any thread. After a failure the list has what was
 * found before it; call pin_list_finish then, too.
 */
bool pin_list_find(struct pin_list *list, const char *root, const struct pin_rules *rules,
	struct error *err) ATTR_NODISCARD;
void pin_list_finish(struct pin_list *list);
bool pin_list_has(const struct pin_list *list, const char *path);

/*
 * Adds a file; its path is copied. Does nothing if a pin above it already protects it. Replaces the
 * pins below it. Fails with ERROR_LIMIT if there are too many.
 */
bool pin_list_add(struct pin_list *list, const char *root, const struct pin_found *found,
	struct error *err) ATTR_NODISCARD;

/*
 * Returns the entries for cell_show_pinned: the root, everything found except links, and the
 * folders on the way there. With `writes_git`, repositories are not pinned. The caller owns
 * `out_texts`, which the entries borrow (words_free).
 */
struct cell_entry *pin_list_entries(const struct pin_list *list, const char *root, bool writes_git,
	size_t *out_count, char ***out_texts);

/* A worktree's repository, as a walk without links has found it. */
struct pin_repository {
	char path[PATH_MAX]; // without links; "": there is none
	dev_t device;
	ino_t inode;
};

/*
 * Finds the repository of a worktree whose `.git` is a file. The agent could have written that
 * file, and an agent of another workspace the files that it leads to. So this finds only a real
 * repository that names the worktree itself, that neither contains the worktree nor lies in it, and
 * that `places` let a confined agent have. False: there is none. Blocks; any thread.
 */
bool pin_list_repository(
	const char *root, const struct pin_places *places, struct pin_repository *out);

/* Which program reads such a file, for people. Static text. */
const char *pin_reader(const struct pin_found *found);

#endif
