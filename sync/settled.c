/* SPDX-License-Identifier: MIT */
#include "sync/settled.h"

#include <stdlib.h>

#include "base/buf.h"
#include "sync/id.h"
#include "sync/tree_view.h"

enum side { BASE, LOCAL, MERGED, RUNTIME, NOW, SIDE_COUNT };

struct settler {
	struct store *store;
	struct stuck *left; // NULL: unknown
	struct trail trail;
};

struct folder {
	const git_oid *ids[SIDE_COUNT];
};

struct result {
	struct tree_view_entry *entries;
	size_t count;
	bool is_changed; // differs from the base
};

static bool settle_folder(
	struct settler *settler, const struct folder *folder, git_oid *out_id, struct error *err);

/* If nothing was applied there may be a conflict, and both sides are unchanged. */
static bool is_settled(const struct settler *settler, const struct store_entry sides[SIDE_COUNT])
{
	if (store_entry_equal(&sides[LOCAL], &sides[MERGED])) {
		return false;
	}
	if (settler->left) {
		return settler->left->count < STUCK_MAX &&
		       !stuck_find(settler->left, settler->trail.path);
	}
	return store_entry_equal(&sides[NOW], &sides[MERGED]);
}

static bool settle_below(struct settler *settler, const struct tree_view_row *row, git_oid *out_id,
	struct error *err)
{
	struct folder folder;
	bool is_any = false;
	for (int i = 0; i < SIDE_COUNT; i++) {
		folder.ids[i] = tree_view_folder(row->sides[i]);
		is_any = is_any || folder.ids[i];
	}
	*out_id = store_empty_tree;
	return !is_any || settle_folder(settler, &folder, out_id, err);
}

/* A file and a folder of one name cannot both exist: then all stays as it was. */
static bool settle_names(struct settler *settler, const struct tree_view_row *row,
	struct tree_view_entry *out, struct error *err)
{
	struct store_entry sides[SIDE_COUNT];
	git_oid folder;
	for (int i = 0; i < SIDE_COUNT; i++) {
		sides[i] = tree_view_leaf(row->sides[i]);
	}
	const struct store_entry *leaf = &sides[is_settled(settler, sides) ? RUNTIME : BASE];
	if (!settle_below(settler, row, &folder, err)) {
		return false;
	}
	bool has_folder = !id_equal(&folder, &store_empty_tree);
	*out = (struct tree_view_entry){.name = row->name};
	if (leaf->mode && has_folder) {
		*out = row->sides[BASE] ? *row->sides[BASE] : *out;
	} else if (leaf->mode) {
		out->mode = leaf->mode;
		out->id = leaf->id;
	} else if (has_folder) {
		out->mode = TREE_VIEW_FOLDER;
		out->id = folder;
	}
	return true;
}

static bool settle_row(struct settler *settler, const struct tree_view_row *row,
	struct result *result, struct error *err)
{
	const struct tree_view_entry *base = row->sides[BASE];
	struct tree_view_entry made = base ? *base : (struct tree_view_entry){.name = row->name};
	if (!tree_view_is_same(row->sides[LOCAL], row->sides[MERGED])) {
		size_t mark;
		if (!trail_push(&settler->trail, row->name, &mark, err)) {
			return false;
		}
		bool settled = settle_names(settler, row, &made, err);
		trail_pop(&settler->trail, mark);
		if (!settled) {
			return false;
		}
	}
	result->is_changed =
		result->is_changed || !tree_view_is_same(made.mode ? &made : NULL, base);
	if (made.mode) {
		result->entries[result->count++] = made;
	}
	return true;
}

static bool settle_rows(struct settler *settler, const struct tree_view views[SIDE_COUNT],
	git_oid *out_id, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	size_t most = 1;
	for (int i = 0; i < SIDE_COUNT; i++) {
		most += views[i].count;
	}
	struct result result = {.entries = mem_alloc(most * sizeof(*result.entries))};
	bool settled = true;
	while (settled && tree_view_next(&walk, &row)) {
		settled = settle_row(settler, &row, &result, err);
	}
	if (settled && result.is_changed && result.count == 0) {
		*out_id = store_empty_tree;
	} else if (settled && result.is_changed) {
		settled =
			tree_view_write(settler->store, result.entries, result.count, out_id, err);
	}
	free(result.entries);
	return settled;
}

/* If the merge has not changed a folder, the base is not even read. */
static bool settle_folder(
	struct settler *settler, const struct folder *folder, git_oid *out_id, struct error *err)
{
	const git_oid *local = folder->ids[LOCAL];
	const git_oid *merged = folder->ids[MERGED];
	*out_id = folder->ids[BASE] ? *folder->ids[BASE] : store_empty_tree;
	if (local == merged || (local && merged && id_equal(local, merged))) {
		return true;
	}
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool settled = true;
	for (int i = 0; i < SIDE_COUNT; i++) {
		settled = settled && tree_view_load(&views[i], settler->store, folder->ids[i],
					     &settler->trail, err);
	}
	settled = settled && settle_rows(settler, views, out_id, err);
	for (int i = 0; i < SIDE_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return settled;
}

bool settled_base(struct store *store, const struct settled_trees *trees, struct stuck *left,
	git_oid *base, struct error *err)
{
	struct settler *settler = mem_alloc_zero(sizeof(*settler));
	settler->store = store;
	settler->left = left;
	git_oid before = *base;
	struct folder root = {.ids = {&before, &trees->local, &trees->merged, &trees->runtime,
				      left ? NULL : &trees->now}};
	bool settled = settle_folder(settler, &root, base, err);
	free(settler);
	return settled;
}
