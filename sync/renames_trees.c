/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "sync/held.h"
#include "sync/renames.h"
#include "sync/tree_lookup.h"

/* Applies renames to the trees of a merge, and reverts them. */

/* The entries that a tree gets at some paths, for held_graft. */
struct placing {
	struct list places; // of struct held_change
};

static void placing_init(struct placing *placing)
{
	list_init(&placing->places);
}

static void place(struct placing *placing, const char *path, const struct store_entry *entry)
{
	struct held_change *change = mem_alloc_zero(sizeof(*change));
	change->path = mem_strdup(path);
	change->runtime = *entry;
	list_append(&placing->places, &change->link);
}

/* Also frees the list. */
static bool placing_make(struct placing *placing, struct store *store, const git_oid *tree,
	git_oid *out_tree, struct error *err)
{
	bool made = held_graft(store, &placing->places, HELD_RUNTIME, tree, out_tree, err);
	held_finish(&placing->places);
	return made;
}

static const struct store_entry nothing = {.mode = ENTRY_NONE};

/* Whether the local side has it at the old place, and the merge at the new one. */
static bool moves_local(const struct rename *one)
{
	return one->by == RENAME_BY_RUNTIME;
}

bool renames_align(const struct renames *renames, struct store *store, enum rename_side side,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	struct placing placing;
	placing_init(&placing);
	for (size_t i = 0; i < renames->count; i++) {
		const struct rename *one = &renames->items[i];
		const bool moves[RENAME_SIDES] = {[RENAME_BASE] = one->base.mode != ENTRY_NONE,
			[RENAME_LOCAL] = one->by == RENAME_BY_RUNTIME,
			[RENAME_RUNTIME] = one->by == RENAME_BY_LOCAL};
		if (moves[side]) {
			place(&placing, one->from, &nothing);
			place(&placing, one->to, side == RENAME_BASE ? &one->base : &one->other);
		}
	}
	return placing_make(&placing, store, tree, out_tree, err);
}

/* Whether an apply left it unchanged. A full list does not know, so everything counts as left. */
static bool is_left(struct stuck *left, const struct rename *one)
{
	return left->count == STUCK_MAX || stuck_find(left, one->to);
}

/* The trees with the old and new places. */
enum { OLD_LOCAL, NEW_BASE, NEW_MERGED, NEW_NOW, RESTORER_COUNT };

struct restorer {
	struct tree_lookup lookups[RESTORER_COUNT];
	struct stuck *left;
	struct placing placing;
};

/*
 * Sets the base's entries of one rename at both places. If the merge has no entry, nothing was
 * applied.
 */
static bool restore(struct restorer *restorer, const struct rename *one, struct error *err)
{
	struct store_entry found[RESTORER_COUNT];
	for (int i = 0; i < RESTORER_COUNT; i++) {
		const struct tree_view_entry *entry;
		bool is_blocked;
		if (!tree_lookup_find(&restorer->lookups[i], i == OLD_LOCAL ? one->from : one->to,
			    &entry, &is_blocked, err)) {
			return false;
		}
		found[i] = tree_view_leaf(entry);
	}
	bool is_done = restorer->left ? !is_left(restorer->left, one)
	                              : store_entry_equal(&found[NEW_NOW], &found[NEW_MERGED]);
	if (is_done && found[NEW_MERGED].mode && one->by != RENAME_BY_LOCAL) {
		/*
		 * If the old name still exists here, the base has it too, so that it gets deleted.
		 */
		place(&restorer->placing, one->from, &found[OLD_LOCAL]);
	} else {
		place(&restorer->placing, one->from, &found[NEW_BASE]);
		place(&restorer->placing, one->to, &nothing);
	}
	return true;
}

bool renames_restore(const struct renames *renames, struct store *store,
	const struct settled_trees *trees, struct stuck *left, git_oid *base, struct error *err)
{
	const git_oid aligned = *base;
	const git_oid *const looked_up[RESTORER_COUNT] = {[OLD_LOCAL] = &trees->local,
		[NEW_BASE] = &aligned,
		[NEW_MERGED] = &trees->merged,
		[NEW_NOW] = left ? &trees->merged : &trees->now};
	struct restorer restorer = {.left = left};
	bool ok = true;
	placing_init(&restorer.placing);
	for (int i = 0; i < RESTORER_COUNT; i++) {
		tree_lookup_init(&restorer.lookups[i], store, looked_up[i]);
	}
	for (size_t i = 0; ok && i < renames->count; i++) {
		ok = restore(&restorer, &renames->items[i], err);
	}
	for (int i = 0; i < RESTORER_COUNT; i++) {
		tree_lookup_finish(&restorer.lookups[i]);
	}
	if (!ok) {
		held_finish(&restorer.placing.places);
	}
	return ok && placing_make(&restorer.placing, store, &aligned, base, err);
}

bool renames_move_local(const struct renames *renames)
{
	for (size_t i = 0; i < renames->count; i++) {
		if (moves_local(&renames->items[i])) {
			return true;
		}
	}
	return false;
}

bool renames_keep_old(const struct renames *renames, struct store *store, struct stuck *left,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	struct placing placing;
	placing_init(&placing);
	for (size_t i = 0; i < renames->count; i++) {
		const struct rename *one = &renames->items[i];
		if (moves_local(one) && (!left || is_left(left, one))) {
			place(&placing, one->from, &one->other);
		}
	}
	return placing_make(&placing, store, tree, out_tree, err);
}
