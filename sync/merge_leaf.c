/* SPDX-License-Identifier: MIT */
#include "sync/merge_impl.h"
#include "sync/merge_text.h"

/* One file on three sides. */

bool merge_add_conflict(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	const char *why, struct error *err)
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
		.runtime = sides[RUNTIME],
		.why = why};
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

/*
 * The executable bit of the side that changed it. If both added the file, either side's is enough.
 */
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

/* A file that both sides changed differently. */
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

bool merge_leaf(struct merger *merger, const struct store_entry sides[SIDE_COUNT],
	struct store_entry *out, struct error *err)
{
	bool is_local = store_entry_equal(&sides[LOCAL], &sides[RUNTIME]) ||
	                store_entry_equal(&sides[RUNTIME], &sides[BASE]);
	*out = sides[LOCAL];
	if (is_local) {
		return true;
	}
	struct stuck *stuck = merger->options.stuck;
	const char *why = stuck ? stuck_find(stuck, merger->trail.path) : NULL;
	if (why) {
		return merge_add_conflict(merger, sides, why, err);
	}
	if (store_entry_equal(&sides[LOCAL], &sides[BASE]) && !merger->is_blocked) {
		*out = sides[RUNTIME];
		return true;
	}
	bool is_merged = false;
	return merge_files(merger, sides, out, &is_merged, err) &&
	       (is_merged || merge_add_conflict(merger, sides, NULL, err));
}
