/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/buf.h"
#include "sync/git/trees.h"
#include "sync/graft.h"
#include "sync/round_impl.h"

/* Changes that a sync cannot bring to the runtime. */

void round_drop_undelivered(struct round *round)
{
	stuck_finish(&round->undelivered);
	held_finish(&round->undelivered_changes);
	round->undelivered_count = 0;
}

bool round_avoid(struct round *round, const struct stuck *paths, bool is_lasting)
{
	for (size_t i = 0; i < paths->count; i++) {
		const struct stuck_path *at = &paths->paths[i];
		if (stuck_find(&round->avoided, at->path)) {
			continue;
		}
		if (round->avoided.count + round->in_way.count >= ROUND_AVOIDED_MAX) {
			return false;
		}
		bool is_again = stuck_find(&round->in_way, at->path);
		stuck_add(is_lasting || is_again ? &round->avoided : &round->in_way, at->path,
			is_lasting ? at->why : "it changes there faster than it can be synced");
	}
	return true;
}

void round_deliver_nothing(struct round *round, const char *why)
{
	round->why_no_delivery = why;
}

/* The version at a path; a folder has no mode here, and is in *out_folder. */
static bool find_version(struct store *store, const git_oid *tree, const char *path,
	struct store_entry *out, git_oid *out_folder, struct error *err)
{
	struct graft found = {.mode = ENTRY_NONE};
	*out = (struct store_entry){.mode = ENTRY_NONE};
	*out_folder = store_empty_tree;
	if (!graft_find(store, tree, path, &found, err) && err->code != ERROR_NOT_FOUND) {
		return false;
	}
	if (found.mode == TREE_VIEW_FOLDER) {
		*out_folder = found.id;
	} else {
		*out = (struct store_entry){.mode = found.mode, .id = found.id};
	}
	return true;
}

/*
 * Leaves one path of the runtime unchanged. Its version becomes the base, because all of it is
 * here. If the local directory could not take it, the base stays instead.
 */
static bool keep_there(struct round *round, struct store *store, const struct stuck_path *at,
	bool is_stuck, struct error *err)
{
	struct held_change *change = mem_alloc_zero(sizeof(*change));
	struct store_entry wanted;
	git_oid folder;
	change->path = mem_strdup(at->path);
	change->is_whole = true;
	list_append(&round->undelivered_changes, &change->link);
	bool found = find_version(store, is_stuck ? &round->base : &round->runtime, at->path,
			     &change->base, &change->base_folder, err) &&
	             find_version(store, &round->collected, at->path, &change->runtime,
			     &change->runtime_folder, err) &&
	             find_version(store, &round->sent, at->path, &wanted, &folder, err);
	if (found && store_entry_equal(&wanted, &change->runtime) &&
		id_equal(&folder, &change->runtime_folder)) {
		list_remove(&change->link); // nothing is left to do about it
		free(change->path);
		free(change);
	} else if (found) {
		round->undelivered_count++;
		stuck_add(&round->undelivered, at->path, at->why);
	}
	return found;
}

static bool note_undelivered(void *data, const struct tree_change *change, struct error *err)
{
	struct round *round = data;
	stuck_add(&round->undelivered, change->path, round->why_no_delivery);
	return true;
}

/* Removes the undelivered paths from the tree that is sent. */
bool round_take_undelivered(
	struct round *round, struct store *store, struct stuck *stuck, struct error *err)
{
	round_drop_undelivered(round);
	if (!round_graft(round, store, HELD_RUNTIME, &round->target, &round->sent, err)) {
		return false;
	}
	for (size_t i = 0; i < round->avoided.count; i++) {
		const struct stuck_path *at = &round->avoided.paths[i];
		if (!keep_there(round, store, at, stuck_find(stuck, at->path) != NULL, err)) {
			return false;
		}
	}
	git_oid wanted;
	if (!held_graft(
		    store, &round->undelivered_changes, HELD_RUNTIME, &round->sent, &wanted, err)) {
		return false;
	}
	round->sent = round->why_no_delivery ? round->collected : wanted;
	if (!round->why_no_delivery) {
		return true;
	}
	round->merge.to_runtime = (struct merge_counts){0};
	return trees_compare(store, &round->collected, &wanted, note_undelivered, round, err);
}
