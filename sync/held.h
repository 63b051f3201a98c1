/* SPDX-License-Identifier: MIT */
#ifndef SYNC_HELD_H
#define SYNC_HELD_H

#include "sync/conflicts.h"

/*
 * Held changes: the runtime's changes to guarded files, which wait for the user. They exist only in
 * the runtime. The base of such a path stays unchanged, so that the next merge finds the same
 * change again; once it is allowed, it merges like any other.
 */
enum held_version {
	HELD_BASE,
	HELD_RUNTIME,
	HELD_MADE, // what the local file would become
	HELD_GONE, // what would be deleted in the local directory
};

/* The tree with this version of each held path; a path without this version is removed. */
bool held_graft(struct store *store, const struct list *held, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* The tree that identifies the changes in this state; HELD_STATES: all of them. */
bool held_tree(struct store *store, const struct list *held, enum held_state state,
	git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* Whether such a tree has this change (its path, local and made). */
bool held_tree_has(struct store *store, const git_oid *tree, const struct held_change *held);

enum {
	HELD_ASKED_MAX = 20,         // files in one question
	HELD_TEXT_MAX = 64 * 1024,   // bytes of one text
	HELD_TEXTS_MAX = 512 * 1024, // bytes of all texts
};

/*
 * Chooses the changes for the next question: the first HELD_ASKED_MAX that are in none of the
 * `refused` trees, because the user has not refused them. So a yes allows only changes that the
 * question names. Sorts the list; files with the fewest folders above them come first. Returns how
 * many it chose.
 */
size_t held_choose(
	struct store *store, struct list *held, const git_oid *refused, size_t refused_count);

/*
 * Reads old_text and new_text of the chosen changes, as far as they are text and within the limits.
 */
bool held_read(struct store *store, const struct list *held, struct error *err) ATTR_NODISCARD;

/*
 * The paths that the user always allows in this workspace. They are kept as guards/always, as a
 * tree with these paths. ERROR_SYSTEM if it cannot be read; the text says how to continue without
 * it.
 */
bool held_find_always(
	struct store *store, git_oid *out_tree, bool *out_found, struct error *err) ATTR_NODISCARD;

/* Adds paths (NULL-terminated) to it; *out_tree is the whole new tree. */
bool held_keep_always(struct store *store, char *const *paths, git_oid *out_tree, bool *out_found,
	struct error *err) ATTR_NODISCARD;

/* Frees the changes in the list. */
void held_finish(struct list *held);

/*
 * Parks the runtime's versions like conflicts_park, because the runtime may end. They stay held,
 * and their conflicts say so.
 */
bool held_park(struct store *store, const struct list *held, const char *stamp,
	struct error *err) ATTR_NODISCARD;

#endif
