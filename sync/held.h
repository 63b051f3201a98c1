/* SPDX-License-Identifier: MIT */
#ifndef SYNC_HELD_H
#define SYNC_HELD_H

#include "sync/conflicts.h"

/*
 * Changes of the runtime's to guarded files, which wait for the user: they are in the runtime
 * and not here. So the two sides differ there, and the base of such a path stays what it was:
 * the next merge finds the same change again, and once it is allowed, it merges as any other.
 */
enum held_version {
	HELD_BASE,
	HELD_RUNTIME,
	HELD_MADE, // what it would become here
	HELD_GONE, // what would be deleted here
};

/* The tree with this version of each path, where there is one; without the path elsewhere. */
bool held_graft(struct store *store, const struct list *held, enum held_version version,
	const git_oid *tree, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* The tree that says which changes these are: those in this state; HELD_STATES: all. */
bool held_tree(struct store *store, const struct list *held, enum held_state state,
	git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/* Whether the change - path, local and made - is one of such a tree. */
bool held_tree_has(struct store *store, const git_oid *tree, const struct held_change *held);

enum {
	HELD_ASKED_MAX = 20,         // files of one question
	HELD_TEXT_MAX = 64 * 1024,   // bytes of one
	HELD_TEXTS_MAX = 512 * 1024, // and of all
};

/*
 * Chooses what the next question is about, so that a yes brings nothing that the question does not
 * name: the first HELD_ASKED_MAX that are in none of these trees of what was refused. Sorts the
 * list, the files with the fewest folders above them first. Says how many are asked about.
 */
size_t held_choose(
	struct store *store, struct list *held, const git_oid *refused, size_t refused_count);

/* Reads old_text and new_text of what is asked about, as far as they are text and these limits
 * allow. */
bool held_read(struct store *store, const struct list *held, struct error *err) ATTR_NODISCARD;

/*
 * What the user always allows in this workspace, kept as guards/always: the tree of these
 * paths. ERROR_SYSTEM where it cannot be read; the text says how one goes on without it.
 */
bool held_find_always(
	struct store *store, git_oid *out_tree, bool *out_found, struct error *err) ATTR_NODISCARD;

/* Adds paths (NULL-terminated) to it; *out_tree is all of it. */
bool held_keep_always(struct store *store, char *const *paths, git_oid *out_tree, bool *out_found,
	struct error *err) ATTR_NODISCARD;

/* Frees them. */
void held_finish(struct list *held);

/*
 * Parks the runtime's versions as conflicts_park does: the runtime may come to its end. They stay
 * held, and their conflicts say so.
 */
bool held_park(struct store *store, const struct list *held, const char *stamp,
	struct error *err) ATTR_NODISCARD;

#endif
