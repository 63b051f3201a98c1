/* SPDX-License-Identifier: MIT */
#include "sync/renames.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/real_path.h"
#include "sync/git_layout.h"
#include "sync/id.h"
#include "sync/path_order.h"
#include "sync/tree_lookup.h"
#include "sync/withheld.h"

/* ---- missing and new files on each side ---- */

enum { BASE, LOCAL, RUNTIME, DELIVERED, SIDE_COUNT };
enum { OF_LOCAL, OF_RUNTIME, OF_COUNT };

/* The places that must be free for a file that follows. */
enum { FREE_IN_BASE, FREE_ON_OTHER, FREE_ON_RENAMER, FREE_OLD_PLACE, FREE_COUNT };

struct finder {
	struct store *store;
	struct trail trail;
	size_t names, path_bytes;
	size_t tries; // calls of follow
	struct tree_lookup free[FREE_COUNT];
	struct rename_files gone[OF_COUNT],
		fresh[OF_COUNT]; // `other` is the entry of the other side
	const struct renames_request *request;
	struct renames *found;
};

struct folder {
	const git_oid *ids[SIDE_COUNT];
};

static bool look_in_folder(struct finder *finder, const struct folder *folder, struct error *err);

static bool is_too_much(const struct finder *finder)
{
	return finder->names > RENAMES_NAMES_MAX || finder->path_bytes > RENAMES_PATHS_MAX;
}

static void look_at_file(struct finder *finder, const struct store_entry sides[SIDE_COUNT])
{
	const char *path = finder->trail.path;
	for (int of = 0; of < OF_COUNT; of++) {
		const struct store_entry *side = &sides[of == OF_LOCAL ? LOCAL : RUNTIME];
		const struct store_entry *other = &sides[of == OF_LOCAL ? RUNTIME : LOCAL];
		if (store_entry_is_file(&sides[BASE]) && !side->mode) {
			rename_files_add(&finder->gone[of], path, &sides[BASE], other);
			finder->path_bytes += finder->trail.len;
		} else if (!sides[BASE].mode && store_entry_is_file(side)) {
			rename_files_add(&finder->fresh[of], path, side, other);
			finder->path_bytes += finder->trail.len;
		}
	}
}

static bool look_at_row(struct finder *finder, const struct tree_view_row *row, struct error *err)
{
	struct store_entry sides[SIDE_COUNT];
	struct folder below;
	size_t mark;
	bool has_folder = false;
	finder->names++;
	if (tree_view_is_same(row->sides[LOCAL], row->sides[RUNTIME]) &&
		tree_view_is_same(row->sides[LOCAL], row->sides[BASE])) {
		return true;
	}
	for (int i = 0; i < SIDE_COUNT; i++) {
		sides[i] = tree_view_leaf(row->sides[i]);
		below.ids[i] = tree_view_folder(row->sides[i]);
		has_folder = has_folder || (i != DELIVERED && below.ids[i]);
	}
	if (finder->request->delivered && store_entry_equal(&sides[RUNTIME], &sides[DELIVERED])) {
		sides[BASE] = sides[DELIVERED]; // the runtime has not changed it
	}
	if (!trail_push(&finder->trail, row->name, &mark, err)) {
		return false;
	}
	look_at_file(finder, sides);
	bool looked = !has_folder || look_in_folder(finder, &below, err);
	trail_pop(&finder->trail, mark);
	return looked;
}

static bool look_in_folder(struct finder *finder, const struct folder *folder, struct error *err)
{
	struct tree_view views[SIDE_COUNT] = {{0}};
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	bool looked = true;
	for (int i = 0; i < SIDE_COUNT; i++) {
		looked = looked && tree_view_load(&views[i], finder->store, folder->ids[i],
					   &finder->trail, err);
	}
	while (looked && !is_too_much(finder) && tree_view_next(&walk, &row)) {
		looked = look_at_row(finder, &row, err);
	}
	for (int i = 0; i < SIDE_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return looked;
}

static bool look(struct finder *finder, struct error *err)
{
	const struct renames_request *request = finder->request;
	struct folder root = {.ids = {&request->trees.base, &request->trees.local,
				      &request->trees.runtime, request->delivered}};
	bool looked = look_in_folder(finder, &root, err);
	for (int of = 0; of < OF_COUNT; of++) {
		rename_files_sort(&finder->gone[of]);
		rename_files_sort(&finder->fresh[of]);
	}
	return looked;
}

/* ---- which files follow ---- */

static const git_oid *tree_of(const struct finder *finder, int of)
{
	const struct merge_trees *trees = &finder->request->trees;
	return of == OF_LOCAL ? &trees->local : &trees->runtime;
}

static bool is_changed(const struct rename_file *file)
{
	return store_entry_is_file(&file->other) && !store_entry_equal(&file->other, &file->entry);
}

/* Whether one side may have renamed something that the other side has changed. */
static bool is_worth_it(const struct finder *finder)
{
	for (int of = 0; of < OF_COUNT; of++) {
		if (finder->gone[of].count > 0 && finder->fresh[1 - of].count > 0) {
			return true;
		}
		for (size_t i = 0; i < finder->gone[of].count; i++) {
			if (is_changed(&finder->gone[of].items[i])) {
				return true;
			}
		}
	}
	return false;
}

/* Whether the path is free, and no file is where a folder above it would have to be. */
static bool is_free(struct tree_lookup *lookup, const char *path, bool *out_free, struct error *err)
{
	const struct tree_view_entry *entry;
	bool is_blocked;
	if (!tree_lookup_find(lookup, path, &entry, &is_blocked, err)) {
		return false;
	}
	*out_free = !entry && !is_blocked;
	return true;
}

static bool is_guarded(const struct renames_request *request, const char *path)
{
	return request->guard && request->root &&
	       guard_paths_have(request->guard, request->root, path, false);
}

static bool is_withheld(const struct renames_request *request, const char *path)
{
	char *whole = request->root ? path_join(request->root, path) : NULL;
	bool withholds = whole && withheld_has(whole);
	free(whole);
	return withholds;
}

/* A new file may turn a folder into a repository of git's. */
static bool has_git_part(const char *path)
{
	unsigned parts = 0;
	while (*path) {
		struct span name = {path, strcspn(path, "/")};
		parts |= git_layout_part(name);
		path += name.len + (path[name.len] == '/');
	}
	return parts != 0;
}

/* Whether all required places are free. */
static bool has_room(
	struct finder *finder, const struct rename *one, bool *out_room, struct error *err)
{
	const char *paths[FREE_COUNT] = {[FREE_IN_BASE] = one->to,
		[FREE_ON_OTHER] = one->by == RENAME_BY_BOTH ? NULL : one->to,
		[FREE_ON_RENAMER] = one->base.mode ? NULL : one->to,
		[FREE_OLD_PLACE] = one->from};
	bool ok = true;
	*out_room = true;
	for (int i = 0; ok && *out_room && i < FREE_COUNT; i++) {
		ok = !paths[i] || is_free(&finder->free[i], paths[i], out_room, err);
	}
	return ok;
}

static bool is_kept_out(const struct renames_request *request, const struct rename *one)
{
	bool is_added = !one->base.mode;
	bool is_stuck = request->stuck && (stuck_find(request->stuck, one->from) ||
						  stuck_find(request->stuck, one->to));
	bool is_long = strlen(one->to) >= PATH_MAX;
	return is_long || is_stuck || is_guarded(request, one->from) ||
	       is_guarded(request, one->to) || is_withheld(request, one->to) ||
	       (is_added && has_git_part(one->to));
}

/* Adds a copy of the rename if it is allowed. */
static bool follow(struct finder *finder, const struct rename *one, struct error *err)
{
	struct renames *found = finder->found;
	bool has;
	if (++finder->tries > RENAMES_MAX || is_kept_out(finder->request, one)) {
		return true;
	}
	if (!has_room(finder, one, &has, err)) {
		return false;
	}
	if (has) {
		found->items =
			mem_realloc(found->items, (found->count + 1) * sizeof(*found->items));
		found->items[found->count] = *one;
		found->items[found->count].from = mem_strdup(one->from);
		found->items[found->count].to = mem_strdup(one->to);
		found->count++;
	}
	return true;
}

/* Whether both sides have given it the same name. */
static bool is_by_both(const struct finder *finder, const struct rename_file *gone, const char *to)
{
	const struct rename_files *files = &finder->gone[OF_RUNTIME];
	const struct rename_file *same = rename_files_find(files, gone->path);
	const struct rename_file *there = rename_files_find(&finder->fresh[OF_LOCAL], to);
	return same && same->match != RENAME_NO_MATCH && there && is_changed(there) &&
	       strcmp(finder->fresh[OF_RUNTIME].items[same->match].path, to) == 0;
}

static bool follow_files(struct finder *finder, int of, struct error *err)
{
	const struct rename_files *gone = &finder->gone[of];
	bool ok = true;
	for (size_t i = 0; ok && i < gone->count; i++) {
		const struct rename_file *file = &gone->items[i];
		if (file->match == RENAME_NO_MATCH) {
			continue;
		}
		struct rename one = {.from = file->path,
			.to = finder->fresh[of].items[file->match].path,
			.by = of == OF_LOCAL ? RENAME_BY_LOCAL : RENAME_BY_RUNTIME,
			.base = file->entry,
			.other = file->other};
		if (is_changed(file)) {
			ok = follow(finder, &one, err);
		} else if (of == OF_LOCAL && is_by_both(finder, file, one.to)) {
			one.by = RENAME_BY_BOTH;
			ok = follow(finder, &one, err);
		}
	}
	return ok;
}

/* A file that the other side has added; `renamer` looks up folders. */
static bool follow_one_added(struct finder *finder, int of, const struct rename_file *file,
	const struct rename_folder *folder, struct tree_lookup *renamer, struct error *err)
{
	bool is_gone;
	if (!is_free(renamer, folder->from, &is_gone, err)) {
		return false;
	}
	if (!is_gone) {
		return true;
	}
	char *to = rename_folder_path(folder, file->path);
	struct rename one = {.from = file->path,
		.to = to,
		.by = of == OF_LOCAL ? RENAME_BY_LOCAL : RENAME_BY_RUNTIME,
		.other = file->entry};
	bool ok = follow(finder, &one, err);
	free(to);
	return ok;
}

/* Files that the other side has added in folders that this side renamed as a whole. */
static bool follow_added(struct finder *finder, int of, struct error *err)
{
	const struct rename_files *added = &finder->fresh[1 - of];
	struct rename_folders folders;
	struct tree_lookup renamer;
	bool ok = true;
	tree_lookup_init(&renamer, finder->store, tree_of(finder, of));
	rename_folders_find(&folders, &finder->gone[of], &finder->fresh[of]);
	for (size_t i = 0; ok && folders.count > 0 && i < added->count; i++) {
		const struct rename_file *file = &added->items[i];
		bool is_new = file->match == RENAME_NO_MATCH && !file->other.mode;
		const struct rename_folder *folder =
			is_new ? rename_folders_above(&folders, file->path) : NULL;
		ok = !folder || follow_one_added(finder, of, file, folder, &renamer, err);
	}
	rename_folders_finish(&folders);
	tree_lookup_finish(&renamer);
	return ok;
}

static int compare_targets(const void *a, const void *b)
{
	return path_compare(((const struct rename *)a)->to, ((const struct rename *)b)->to);
}

/* Whether it is the same path, or one below it. */
static bool is_at_or_below(const char *path, const char *above)
{
	size_t len = strlen(above);
	return strncmp(path, above, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

static void rename_free(struct rename *one)
{
	free(one->from);
	free(one->to);
}

/*
 * If several renames lead to the same name, or one leads to a name that another one needs as a
 * folder, drops all of them.
 */
static void drop_doubles(struct renames *found)
{
	size_t kept = 0;
	if (found->count > 0) {
		qsort(found->items, found->count, sizeof(*found->items), compare_targets);
	}
	for (size_t i = 0, end; i < found->count; i = end) {
		end = i + 1;
		while (end < found->count &&
			is_at_or_below(found->items[end].to, found->items[i].to)) {
			end++;
		}
		if (end - i == 1) {
			found->items[kept++] = found->items[i];
			continue;
		}
		for (size_t at = i; at < end; at++) {
			rename_free(&found->items[at]);
		}
	}
	found->count = kept;
}

/* All renames of this side. */
static bool follow_all(struct finder *finder, int of, struct error *err)
{
	const git_oid *renamer = tree_of(finder, of);
	const git_oid *const trees[FREE_COUNT] = {[FREE_IN_BASE] = &finder->request->trees.base,
		[FREE_ON_OTHER] = tree_of(finder, 1 - of),
		[FREE_ON_RENAMER] = renamer,
		[FREE_OLD_PLACE] = renamer};
	for (int i = 0; i < FREE_COUNT; i++) {
		tree_lookup_init(&finder->free[i], finder->store, trees[i]);
	}
	bool ok = follow_files(finder, of, err) && follow_added(finder, of, err);
	for (int i = 0; i < FREE_COUNT; i++) {
		tree_lookup_finish(&finder->free[i]);
	}
	return ok;
}

static bool find_all(struct finder *finder, struct error *err)
{
	const atomic_bool *is_cancelled = finder->request->is_cancelled;
	for (int of = 0; of < OF_COUNT; of++) {
		rename_match(finder->store, &finder->gone[of], &finder->fresh[of], is_cancelled);
	}
	bool ok = !is_cancelled || !*is_cancelled || error_set(err, ERROR_UNAVAILABLE, "cancelled");
	for (int of = 0; ok && of < OF_COUNT; of++) {
		ok = follow_all(finder, of, err);
	}
	return ok;
}

bool renames_find(struct renames *renames, struct store *store,
	const struct renames_request *request, struct error *err)
{
	const struct merge_trees *trees = &request->trees;
	*renames = (struct renames){0};
	if (id_equal(&trees->local, &trees->runtime) || id_equal(&trees->local, &trees->base) ||
		id_equal(&trees->runtime, &trees->base)) {
		return true;
	}
	struct finder *finder = mem_alloc_zero(sizeof(*finder));
	finder->store = store;
	finder->request = request;
	finder->found = renames;
	bool ok = look(finder, err);
	if (ok && !is_too_much(finder) && is_worth_it(finder)) {
		ok = find_all(finder, err);
	}
	for (int of = 0; of < OF_COUNT; of++) {
		rename_files_finish(&finder->gone[of]);
		rename_files_finish(&finder->fresh[of]);
	}
	drop_doubles(renames);
	if (finder->tries > RENAMES_MAX) {
		renames_finish(renames);
	}
	free(finder);
	return ok;
}

void renames_finish(struct renames *renames)
{
	for (size_t i = 0; i < renames->count; i++) {
		rename_free(&renames->items[i]);
	}
	free(renames->items);
	*renames = (struct renames){0};
}

/* ---- changes that wait for the user ---- */

bool renames_touch(const struct renames *renames, const struct list *held)
{
	struct stuck paths = {0};
	bool touches = false;
	for (size_t i = 0; i < renames->count; i++) {
		stuck_add(&paths, renames->items[i].from, "");
		stuck_add(&paths, renames->items[i].to, "");
	}
	LIST_FOR_EACH(one, held, struct held_change, link) {
		touches = touches || one->is_whole || stuck_find(&paths, one->path);
	}
	stuck_finish(&paths);
	return touches && renames->count > 0;
}

/* ---- what was moved ---- */

void renames_find_moved(struct rename_files *out, struct store *store, const git_oid *from,
	const git_oid *to, const atomic_bool *is_cancelled)
{
	struct error ignored;
	const struct renames_request request = {
		.trees = {*from, *to, *from}, .is_cancelled = is_cancelled};
	struct finder *finder = mem_alloc_zero(sizeof(*finder));
	finder->store = store;
	finder->request = &request;
	struct rename_files *gone = &finder->gone[OF_LOCAL];
	*out = (struct rename_files){0};
	if (look(finder, &ignored) && !is_too_much(finder)) {
		rename_match(store, gone, &finder->fresh[OF_LOCAL], is_cancelled);
		*out = *gone;
		*gone = (struct rename_files){0};
	}
	for (int of = 0; of < OF_COUNT; of++) {
		rename_files_finish(&finder->gone[of]);
		rename_files_finish(&finder->fresh[of]);
	}
	free(finder);
}
