/* SPDX-License-Identifier: MIT */
#include "sync/merge_impl.h"

#include <stdlib.h>

#include "sync/held.h"
#include "sync/id.h"
#include "sync/moved.h"

/* A folder on each side that has one. */
struct folder {
	const git_oid *ids[SIDE_COUNT];
};

/* The entries of a merged folder; the names are borrowed from the views. */
struct result {
	struct tree_view_entry *entries;
	size_t count;
};

static bool merge_folder(
	struct merger *merger, const struct folder *folder, git_oid *out_id, struct error *err);

/* ---- counting ---- */

static void count_change(struct merge_counts *counts, const struct store_entry *before,
	const struct store_entry *after)
{
	if (store_entry_equal(before, after)) {
		return;
	}
	if (before->mode == ENTRY_NONE) {
		counts->added++;
	} else if (after->mode == ENTRY_NONE) {
		counts->deleted++;
	} else {
		counts->changed++;
	}
}

/* ---- one name ---- */

static void result_add(struct result *result, struct span name, unsigned mode, const git_oid *id)
{
	result->entries[result->count++] = (struct tree_view_entry){name, mode, *id};
}

static bool is_empty_tree(const git_oid *id)
{
	return id_equal(id, &store_empty_tree);
}

/*
 * Merges the folder of a name, after its file. They cannot both exist. Below a local file that
 * stays, everything of the runtime is a conflict, so that the folder is empty. A file of the
 * runtime gives way to a local folder.
 */
static bool merge_row_folder(struct merger *merger, const struct tree_view_row *row,
	const struct store_entry sides[SIDE_COUNT], struct store_entry *leaf, git_oid *out_id,
	struct error *err)
{
	struct folder folder;
	bool was_blocked = merger->is_blocked;
	bool was_replaced = merger->is_replaced;
	bool is_any = false;
	bool merged = true;
	for (int i = 0; i < SIDE_COUNT; i++) {
		folder.ids[i] = tree_view_folder(row->sides[i]);
		is_any = is_any || folder.ids[i];
	}
	*out_id = store_empty_tree;
	if (is_any) {
		merger->is_blocked = was_blocked || (leaf->mode && sides[LOCAL].mode);
		merger->is_replaced = was_replaced || merge_has_guarded(merger, leaf);
		merged = merge_folder(merger, &folder, out_id, err);
		merger->is_blocked = was_blocked;
		merger->is_replaced = was_replaced;
	}
	if (merged && leaf->mode && !is_empty_tree(out_id)) {
		leaf->mode = ENTRY_NONE;
		merged = merge_add_conflict(merger, sides, NULL, err);
	}
	return merged;
}

/* A deletion by the runtime that is not followed. */
static bool is_kept(const struct merger *merger, const struct tree_view_row *row,
	const struct store_entry sides[SIDE_COUNT])
{
	return merger->options.keeps_deleted && sides[RUNTIME].mode == ENTRY_NONE &&
	       !tree_view_folder(row->sides[RUNTIME]) &&
	       store_entry_equal(&sides[LOCAL], &sides[BASE]);
}

static git_oid folder_of(const struct tree_view_entry *entry)
{
	const git_oid *id = tree_view_folder(entry);
	return id ? *id : store_empty_tree;
}

/* A deletion of files that the agent has moved to a place that is not synced. */
static bool is_moved(const struct merger *merger, const struct tree_view_row *row,
	const struct store_entry *local, const struct store_entry *made)
{
	const struct id_set *moved = merger->options.moved;
	if (!moved || merger->is_replaced || made->mode) {
		return false;
	}
	if (local->mode) {
		return moved_has_file(moved, merger->store, local);
	}
	return tree_view_folder(row->sides[LOCAL]) && !row->sides[RUNTIME] &&
	       tree_view_is_same(row->sides[BASE], row->sides[LOCAL]) &&
	       moved_has_folder(moved, &row->sides[LOCAL]->id);
}

enum holding { HOLDING_NONE, HOLDING_FILE, HOLDING_WHOLE };

/*
 * Holds the agent's change of a guarded file. If one side has a folder in its place, the folder
 * cannot exist on the other side: then all of it stays as it is.
 */
static bool hold(struct merger *merger, const struct tree_view_row *row,
	const struct store_entry sides[SIDE_COUNT], struct store_entry *leaf,
	enum holding *out_holding, struct error *err)
{
	struct store_entry made = *leaf;
	bool guards;
	*out_holding = HOLDING_NONE;
	if (!merge_guards(merger, &sides[LOCAL], &made, &guards, err)) {
		return false;
	}
	if (!guards && !is_moved(merger, row, &sides[LOCAL], &made)) {
		return true;
	}
	*leaf = sides[LOCAL];
	struct held_change held = {.base = sides[BASE],
		.local = sides[LOCAL],
		.runtime = sides[RUNTIME],
		.made = made,
		.is_whole = tree_view_folder(row->sides[LOCAL]) ||
	                    tree_view_folder(row->sides[RUNTIME]),
		.base_folder = folder_of(row->sides[BASE]),
		.runtime_folder = folder_of(row->sides[RUNTIME])};
	*out_holding = held.is_whole ? HOLDING_WHOLE : HOLDING_FILE;
	return merge_hold(merger, &held, !guards, err);
}

static bool merge_names(struct merger *merger, const struct tree_view_row *row,
	struct result *result, struct error *err)
{
	struct store_entry sides[SIDE_COUNT];
	struct store_entry leaf;
	git_oid folder;
	enum holding holding;
	for (int i = 0; i < SIDE_COUNT; i++) {
		sides[i] = tree_view_leaf(row->sides[i]);
	}
	if (merger->options.delivered && store_entry_equal(&sides[RUNTIME], &sides[DELIVERED])) {
		sides[BASE] = sides[DELIVERED];
	}
	if (is_kept(merger, row, sides)) {
		leaf = sides[LOCAL];
	} else if (!merge_leaf(merger, sides, &leaf, err)) {
		return false;
	}
	if (merger->is_blocked) {
		leaf.mode = ENTRY_NONE;
	}
	if (!hold(merger, row, sides, &leaf, &holding, err)) {
		return false;
	}
	if (holding == HOLDING_WHOLE) {
		folder = folder_of(row->sides[LOCAL]);
	} else if (!merge_row_folder(merger, row, sides, &leaf, &folder, err)) {
		return false;
	}
	count_change(&merger->merge->to_local, &sides[LOCAL], &leaf);
	if (holding == HOLDING_NONE) {
		count_change(&merger->merge->to_runtime, &sides[RUNTIME], &leaf);
	}
	if (leaf.mode) {
		result_add(result, row->name, leaf.mode, &leaf.id);
	} else if (!is_empty_tree(&folder)) {
		result_add(result, row->name, TREE_VIEW_FOLDER, &folder);
	}
	return true;
}

static bool merge_row(struct merger *merger, const struct tree_view_row *row, struct result *result,
	struct error *err)
{
	const struct tree_view_entry *local = row->sides[LOCAL];
	if (++merger->rows > MERGE_ROWS_MAX) {
		return error_set(err, ERROR_LIMIT, "merging: more than %d names in the trees",
			MERGE_ROWS_MAX);
	}
	if (local && tree_view_is_same(local, row->sides[RUNTIME])) {
		result_add(result, row->name, local->mode, &local->id);
		return true;
	}
	size_t mark;
	if (!trail_push(&merger->trail, row->name, &mark, err)) {
		return false;
	}
	bool merged = merge_names(merger, row, result, err);
	trail_pop(&merger->trail, mark);
	return merged;
}

/* ---- one folder ---- */

static bool is_same_view(const struct tree_view *view, const struct result *result)
{
	if (view->count != result->count) {
		return false;
	}
	for (size_t i = 0; i < result->count; i++) {
		const struct tree_view_entry *a = &view->entries[i];
		const struct tree_view_entry *b = &result->entries[i];
		if (!tree_view_is_same(a, b) || !span_equals(a->name, b->name)) {
			return false;
		}
	}
	return true;
}

/* Uses the tree of a side if the result equals it; otherwise writes a new one. */
static bool result_write(struct merger *merger, const struct folder *folder,
	const struct tree_view views[SIDE_COUNT], struct result *result, git_oid *out_id,
	struct error *err)
{
	if (result->count == 0) {
		*out_id = store_empty_tree;
		return true;
	}
	for (int i = 0; i < SIDE_COUNT; i++) {
		if (folder->ids[i] && is_same_view(&views[i], result)) {
			*out_id = *folder->ids[i];
			return true;
		}
	}
	return tree_view_write(merger->store, result->entries, result->count, out_id, err);
}

static bool merge_rows(struct merger *merger, const struct folder *folder,
	const struct tree_view views[SIDE_COUNT], git_oid *out_id, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	size_t most = views[BASE].count + views[LOCAL].count + views[RUNTIME].count;
	struct result result = {.entries = mem_alloc((most + 1) * sizeof(*result.entries))};
	bool merged = true;
	while (merged && tree_view_next(&walk, &row)) {
		merged = merge_row(merger, &row, &result, err);
	}
	merged = merged && result_write(merger, folder, views, &result, out_id, err);
	free(result.entries);
	return merged;
}

static bool merge_folder(
	struct merger *merger, const struct folder *folder, git_oid *out_id, struct error *err)
{
	const git_oid *local = folder->ids[LOCAL];
	const git_oid *runtime = folder->ids[RUNTIME];
	if (local && runtime && id_equal(local, runtime)) {
		*out_id = *local;
		return true;
	}
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool loaded = true;
	for (int i = 0; i < SIDE_COUNT; i++) {
		loaded = loaded && tree_view_load(&views[i], merger->store, folder->ids[i],
					   &merger->trail, err);
	}
	bool merged = loaded && merge_rows(merger, folder, views, out_id, err);
	for (int i = 0; i < SIDE_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return merged;
}

/* ---- all ---- */

static int compare_paths(const void *a, const void *b)
{
	const struct conflict *const *left = a;
	const struct conflict *const *right = b;
	return strcmp((*left)->path, (*right)->path);
}

/* They were found folder by folder, in an order where "a/b" comes before "a.b". */
static void sort_conflicts(struct merge *merge)
{
	if (merge->conflict_count < 2) {
		return;
	}
	size_t count = 0;
	struct conflict **all = mem_alloc(merge->conflict_count * sizeof(struct conflict *));
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		all[count++] = conflict;
		list_remove(&conflict->link);
	}
	qsort(all, count, sizeof(struct conflict *), compare_paths);
	for (size_t i = 0; i < count; i++) {
		list_append(&merge->conflicts, &all[i]->link);
	}
	free(all);
}

void merge_init(struct merge *merge)
{
	*merge = (struct merge){.merged = store_empty_tree};
	list_init(&merge->conflicts);
	list_init(&merge->held);
	list_init(&merge->moved);
}

void merge_move(struct merge *to, struct merge *from)
{
	*to = *from;
	list_init(&to->conflicts);
	list_init(&to->held);
	list_init(&to->moved);
	list_move_all(&to->conflicts, &from->conflicts);
	list_move_all(&to->held, &from->held);
	list_move_all(&to->moved, &from->moved);
	merge_init(from);
}

bool merge_run_as(struct merge *merge, struct store *store, const struct merge_trees *trees,
	const struct merge_options *options, struct error *err)
{
	merge_init(merge);
	struct merger *merger = mem_alloc_zero(sizeof(*merger));
	merger->merge = merge;
	merger->store = store;
	merger->options = *options;
	merger->local = &trees->local;
	struct folder root = {
		.ids = {&trees->base, &trees->local, &trees->runtime, options->delivered}};
	bool merged = merge_folder(merger, &root, &merge->merged, err);
	guard_links_destroy(merger->links);
	free(merger);
	sort_conflicts(merge);
	return merged;
}

bool merge_run(struct merge *merge, struct store *store, const struct merge_trees *trees,
	struct error *err)
{
	return merge_run_as(merge, store, trees, &(struct merge_options){0}, err);
}

static void conflict_destroy(struct conflict *conflict)
{
	list_remove(&conflict->link);
	free(conflict->path);
	free(conflict->file);
	free(conflict);
}

void merge_take_conflicts(struct merge *to, struct merge *from)
{
	struct stuck known = {0};
	LIST_FOR_EACH(conflict, &to->conflicts, struct conflict, link) {
		stuck_add(&known, conflict->path, "");
	}
	LIST_FOR_EACH(conflict, &from->conflicts, struct conflict, link) {
		if (stuck_find(&known, conflict->path)) {
			conflict_destroy(conflict);
		} else {
			list_remove(&conflict->link);
			list_append(&to->conflicts, &conflict->link);
			to->conflict_count++;
		}
	}
	from->conflict_count = 0;
	stuck_finish(&known);
	sort_conflicts(to);
}

void merge_finish(struct merge *merge)
{
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		conflict_destroy(conflict);
	}
	merge->conflict_count = 0;
	held_finish(&merge->held);
	held_finish(&merge->moved);
	merge->held_count = 0;
	merge->moved_count = 0;
}
