/* SPDX-License-Identifier: MIT */
#include "sync/merge.h"

#include <stdlib.h>

#include "sync/id.h"
#include "sync/merge_text.h"
#include "sync/tree_view.h"

enum side { BASE, LOCAL, RUNTIME, SIDE_COUNT };

struct merger {
	struct merge *merge;
	struct store *store;
	struct trail trail;
	size_t rows;
	bool is_blocked; // we are below a local file that stays
	bool keeps_deleted;
};

/* What a folder is on the three sides, where it is one, and after the merge. */
struct folder {
	const git_oid *ids[SIDE_COUNT];
};

/* The entries of a merged folder; the names are borrowed from the three views. */
struct result {
	struct tree_view_entry *entries;
	size_t count;
};

static bool merge_folder(
	struct merger *merger, const struct folder *folder, git_oid *out_id, struct error *err);

/* ---- one file ---- */

static bool add_conflict(
	struct merger *merger, const struct store_entry sides[SIDE_COUNT], struct error *err)
{
	struct merge *merge = merger->merge;
	if (merge->conflict_count == MERGE_CONFLICTS_MAX) {
		return error_set(err, ERROR_LIMIT,
			"merging: more than %d conflicts; nothing was changed",
			MERGE_CONFLICTS_MAX);
	}
	struct conflict *conflict = mem_alloc(sizeof(*conflict));
	*conflict = (struct conflict){.path = mem_strdup(merger->trail.path),
		.base = sides[BASE],
		.local = sides[LOCAL],
		.runtime = sides[RUNTIME]};
	list_append(&merge->conflicts, &conflict->link);
	merge->conflict_count++;
	return true;
}

static struct store_entry with_executable(const struct store_entry *entry, bool is_executable)
{
	struct store_entry made = *entry;
	if (entry->mode == ENTRY_BIG) {
		git_oid content;
		store_big_content(entry, &content);
		return store_big_entry(&content, is_executable);
	}
	made.mode = is_executable ? ENTRY_EXECUTABLE : ENTRY_FILE;
	return made;
}

/* The bit of the side that changed it; of a file that both added, either side's. */
static bool merge_executable(const struct store_entry sides[SIDE_COUNT])
{
	bool local = store_entry_is_executable(&sides[LOCAL]);
	bool runtime = store_entry_is_executable(&sides[RUNTIME]);
	if (!store_entry_is_file(&sides[BASE])) {
		return local || runtime;
	}
	return local == store_entry_is_executable(&sides[BASE]) ? runtime : local;
}

static bool merge_texts(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	struct store_entry *out, bool *out_merged, struct error *err)
{
	struct merge_texts texts = {sides[BASE].id, sides[LOCAL].id, sides[RUNTIME].id};
	struct store_entry made = {.mode = ENTRY_FILE};
	if (!merge_text(merger->store, &texts, &made.id, out_merged, err)) {
		return false;
	}
	if (*out_merged) {
		*out = with_executable(&made, merge_executable(sides));
		merger->merge->text_merges++;
	}
	return true;
}

/* Two files that both sides changed, each in its way. */
static bool merge_files(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	struct store_entry *out, bool *out_merged, struct error *err)
{
	const struct store_entry *base = &sides[BASE];
	const struct store_entry *local = &sides[LOCAL];
	const struct store_entry *runtime = &sides[RUNTIME];
	const struct store_entry *content = NULL;
	bool has_base = store_entry_is_file(base);
	if (!store_entry_is_file(local) || !store_entry_is_file(runtime)) {
		return true;
	}
	if (store_entry_same_content(local, runtime) || store_entry_same_content(runtime, base)) {
		content = local;
	} else if (store_entry_same_content(local, base)) {
		content = runtime;
	}
	if (content) {
		*out = with_executable(content, merge_executable(sides));
		*out_merged = true;
		return true;
	}
	bool is_big = local->mode == ENTRY_BIG || runtime->mode == ENTRY_BIG;
	if (!has_base || base->mode == ENTRY_BIG || is_big) {
		return true;
	}
	return merge_texts(merger, sides, out, out_merged, err);
}

static bool merge_leaf(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	struct store_entry *out, struct error *err)
{
	bool is_local = store_entry_equal(&sides[LOCAL], &sides[RUNTIME]) ||
	                store_entry_equal(&sides[RUNTIME], &sides[BASE]);
	*out = sides[LOCAL];
	if (is_local) {
		return true;
	}
	if (store_entry_equal(&sides[LOCAL], &sides[BASE]) && !merger->is_blocked) {
		*out = sides[RUNTIME];
		return true;
	}
	bool is_merged = false;
	return merge_files(merger, sides, out, &is_merged, err) &&
	       (is_merged || add_conflict(merger, sides, err));
}

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
 * The folder of a name, after its file. Both cannot stand: below a local file that
 * stays everything of the runtime's is a conflict, and so the folder is empty; a file of
 * the runtime's gives way to a local folder.
 */
static bool merge_row_folder(struct merger *merger, const struct tree_view_row *row,
	const struct store_entry sides[SIDE_COUNT], struct store_entry *leaf, git_oid *out_id,
	struct error *err)
{
	struct folder folder;
	bool was_blocked = merger->is_blocked;
	bool is_any = false;
	bool merged = true;
	for (int i = 0; i < SIDE_COUNT; i++) {
		folder.ids[i] = tree_view_folder(row->sides[i]);
		is_any = is_any || folder.ids[i];
	}
	*out_id = store_empty_tree;
	if (is_any) {
		merger->is_blocked = was_blocked || (leaf->mode && sides[LOCAL].mode);
		merged = merge_folder(merger, &folder, out_id, err);
		merger->is_blocked = was_blocked;
	}
	if (merged && leaf->mode && !is_empty_tree(out_id)) {
		leaf->mode = ENTRY_NONE;
		merged = add_conflict(merger, sides, err);
	}
	return merged;
}

/* A deletion of the runtime's that is not followed. */
static bool is_kept(const struct merger *merger, const struct tree_view_row *row,
	const struct store_entry sides[SIDE_COUNT])
{
	return merger->keeps_deleted && sides[RUNTIME].mode == ENTRY_NONE &&
	       !tree_view_folder(row->sides[RUNTIME]) &&
	       store_entry_equal(&sides[LOCAL], &sides[BASE]);
}

static bool merge_names(struct merger *merger, const struct tree_view_row *row,
	struct result *result, struct error *err)
{
	struct store_entry sides[SIDE_COUNT];
	struct store_entry leaf;
	git_oid folder;
	for (int i = 0; i < SIDE_COUNT; i++) {
		sides[i] = tree_view_leaf(row->sides[i]);
	}
	if (is_kept(merger, row, sides)) {
		leaf = sides[LOCAL];
	} else if (!merge_leaf(merger, sides, &leaf, err)) {
		return false;
	}
	if (merger->is_blocked) {
		leaf.mode = ENTRY_NONE;
	}
	if (!merge_row_folder(merger, row, sides, &leaf, &folder, err)) {
		return false;
	}
	count_change(&merger->merge->to_local, &sides[LOCAL], &leaf);
	count_change(&merger->merge->to_runtime, &sides[RUNTIME], &leaf);
	if (leaf.mode) {
		result_add(result, row->name, leaf.mode, &leaf.id);
	} else if (!is_empty_tree(&folder)) {
		result_add(result, row->name, TREE_VIEW_FOLDER, &folder);
	}
	return true;
}

static bool is_same_entry(const struct tree_view_entry *a, const struct tree_view_entry *b)
{
	return a && b && a->mode == b->mode && id_equal(&a->id, &b->id);
}

static bool merge_row(struct merger *merger, const struct tree_view_row *row, struct result *result,
	struct error *err)
{
	const struct tree_view_entry *local = row->sides[LOCAL];
	if (++merger->rows > MERGE_ROWS_MAX) {
		return error_set(err, ERROR_LIMIT, "merging: more than %d names in the trees",
			MERGE_ROWS_MAX);
	}
	if (is_same_entry(local, row->sides[RUNTIME])) {
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
		if (!is_same_entry(a, b) || !span_equals(a->name, b->name)) {
			return false;
		}
	}
	return true;
}

/* The tree of one of the sides where the result is that; else a new one. */
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

/* They were found folder by folder, in which "a/b" comes before "a.b". */
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

static bool merge_all(struct merge *merge, struct store *store, const struct merge_trees *trees,
	bool keeps_deleted, struct error *err)
{
	*merge = (struct merge){.merged = store_empty_tree};
	list_init(&merge->conflicts);
	struct merger *merger = mem_alloc_zero(sizeof(*merger));
	merger->merge = merge;
	merger->store = store;
	merger->keeps_deleted = keeps_deleted;
	struct folder root = {.ids = {&trees->base, &trees->local, &trees->runtime}};
	bool merged = merge_folder(merger, &root, &merge->merged, err);
	free(merger);
	sort_conflicts(merge);
	return merged;
}

bool merge_run(struct merge *merge, struct store *store, const struct merge_trees *trees,
	struct error *err)
{
	return merge_all(merge, store, trees, false, err);
}

bool merge_run_keeping(struct merge *merge, struct store *store, const struct merge_trees *trees,
	struct error *err)
{
	return merge_all(merge, store, trees, true, err);
}

void merge_finish(struct merge *merge)
{
	LIST_FOR_EACH(conflict, &merge->conflicts, struct conflict, link) {
		list_remove(&conflict->link);
		free(conflict->path);
		free(conflict);
	}
	merge->conflict_count = 0;
}
