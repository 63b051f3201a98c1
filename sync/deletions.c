/* SPDX-License-Identifier: MIT */
#include "sync/deletions.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/moved.h"
#include "sync/tree_view.h"

enum { FROM, TO, SIDE_COUNT };

struct finder {
	struct deletions *deletions;
	struct store *store;
	struct deletions_moved *moved; // may be NULL
	struct trail trail;
};

static bool find_in_folder(
	struct finder *finder, const git_oid *from, const git_oid *to, struct error *err);

/* The id of all paths: each step hashes the id so far and the next path. */
static bool add(struct finder *finder, struct error *err)
{
	struct deletions *deletions = finder->deletions;
	const struct git *git = finder->store->git;
	char bytes[sizeof(deletions->id.id) + PATH_MAX];
	size_t len = finder->trail.len;
	memcpy(bytes, deletions->id.id, sizeof(deletions->id.id));
	memcpy(bytes + sizeof(deletions->id.id), finder->trail.path, len);
	if (deletions->count++ < DELETIONS_NAMED_MAX) {
		words_append(&deletions->named, finder->trail.path);
	}
	return git->odb_hash(&deletions->id, bytes, sizeof(deletions->id.id) + len,
		       GIT_OBJECT_BLOB) == 0 ||
	       error_set_git(git, err, "counting what was deleted");
}

/* Whether it exists under another name, which then excuses no other path. */
static bool is_moved(struct finder *finder, const struct store_entry *entry)
{
	struct deletions_moved *moved = finder->moved;
	if (!moved) {
		return false;
	}
	const struct rename_file *file = rename_files_find(&moved->files, finder->trail.path);
	return (file && file->match != RENAME_NO_MATCH) ||
	       (moved_has_file(&moved->ids, finder->store, entry) &&
		       id_set_add(&moved->spent, &entry->id));
}

static bool find_at(struct finder *finder, const struct tree_view_row *row, struct error *err)
{
	size_t mark;
	const struct tree_view_entry *from = row->sides[FROM];
	const git_oid *folder = tree_view_folder(from);
	if (!from || !trail_push(&finder->trail, row->name, &mark, err)) {
		return from == NULL;
	}
	struct store_entry leaf = tree_view_leaf(from);
	bool is_file = leaf.mode != ENTRY_NONE;
	bool found = true;
	if (is_file && tree_view_leaf(row->sides[TO]).mode == ENTRY_NONE) {
		found = is_moved(finder, &leaf) || add(finder, err);
	} else if (folder) {
		found = find_in_folder(finder, folder, tree_view_folder(row->sides[TO]), err);
	}
	trail_pop(&finder->trail, mark);
	return found;
}

static bool find_in_folder(
	struct finder *finder, const git_oid *from, const git_oid *to, struct error *err)
{
	if (to && id_equal(from, to)) {
		return true;
	}
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool found = tree_view_load(&views[FROM], finder->store, from, &finder->trail, err) &&
	             tree_view_load(&views[TO], finder->store, to, &finder->trail, err);
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	while (found && tree_view_next(&walk, &row)) {
		found = find_at(finder, &row, err);
	}
	tree_view_finish(&views[FROM]);
	tree_view_finish(&views[TO]);
	return found;
}

bool deletions_find(struct deletions *deletions, struct store *store, const git_oid *from,
	const git_oid *to, struct deletions_moved *moved, struct error *err)
{
	*deletions = (struct deletions){0};
	struct finder *finder = mem_alloc_zero(sizeof(*finder));
	finder->deletions = deletions;
	finder->store = store;
	finder->moved = moved;
	for (size_t i = 0; moved && i < moved->files.count; i++) {
		const struct rename_file *file = &moved->files.items[i];
		if (file->match != RENAME_NO_MATCH) {
			id_set_add(&moved->spent, &file->entry.id);
		}
	}
	bool found = find_in_folder(finder, from, to, err);
	free(finder);
	return found;
}

void deletions_moved_finish(struct deletions_moved *moved)
{
	rename_files_finish(&moved->files);
	id_set_finish(&moved->ids);
	id_set_finish(&moved->spent);
}

void deletions_finish(struct deletions *deletions)
{
	words_free(deletions->named);
	*deletions = (struct deletions){0};
}

/* ---- what is not deleted in the sandbox ---- */

enum { SPARED_BASE, SPARED_RUNTIME, SPARED_MERGED, SPARED_TREE, SPARED_COUNT };

struct sparer {
	struct store *store;
	bool is_base;
	struct trail trail;
};

static bool spare_folder(struct sparer *sparer, const git_oid *const ids[SPARED_COUNT],
	git_oid *out_id, struct error *err);

/* The result for one name; *out has a mode of 0 if it is absent. */
static bool spare_row(struct sparer *sparer, const struct tree_view_row *row,
	struct tree_view_entry *out, struct error *err)
{
	const struct tree_view_entry *base = row->sides[SPARED_BASE];
	const struct tree_view_entry *runtime = row->sides[SPARED_RUNTIME];
	const struct tree_view_entry *merged = row->sides[SPARED_MERGED];
	const struct tree_view_entry *tree = row->sides[SPARED_TREE];
	*out = tree ? *tree : (struct tree_view_entry){.mode = ENTRY_NONE};
	if (!merged && tree_view_leaf(base).mode && tree_view_leaf(runtime).mode) {
		*out = sparer->is_base ? *base : *runtime;
		return true;
	}
	bool is_in_way = tree_view_leaf(tree).mode || tree_view_leaf(merged).mode;
	if (is_in_way || !tree_view_folder(base) || !tree_view_folder(runtime)) {
		return true;
	}
	const git_oid *ids[SPARED_COUNT];
	size_t mark;
	for (int i = 0; i < SPARED_COUNT; i++) {
		ids[i] = tree_view_folder(row->sides[i]);
	}
	if (!trail_push(&sparer->trail, row->name, &mark, err)) {
		return false;
	}
	bool spared = spare_folder(sparer, ids, &out->id, err);
	trail_pop(&sparer->trail, mark);
	out->mode = id_equal(&out->id, &store_empty_tree) ? ENTRY_NONE : TREE_VIEW_FOLDER;
	return spared;
}

static bool spare_rows(struct sparer *sparer, const struct tree_view views[SPARED_COUNT],
	git_oid *out_id, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = SPARED_COUNT};
	struct tree_view_row row;
	size_t most = 1;
	size_t count = 0;
	bool spared = true;
	for (int i = 0; i < SPARED_COUNT; i++) {
		most += views[i].count;
	}
	struct tree_view_entry *entries = mem_alloc(most * sizeof(*entries));
	while (spared && tree_view_next(&walk, &row)) {
		spared = spare_row(sparer, &row, &entries[count], err);
		entries[count].name = row.name;
		count += entries[count].mode != ENTRY_NONE;
	}
	*out_id = store_empty_tree;
	spared = spared &&
	         (count == 0 || tree_view_write(sparer->store, entries, count, out_id, err));
	free(entries);
	return spared;
}

/* If the merge has everything that the runtime has, nothing was deleted. */
static bool spare_folder(struct sparer *sparer, const git_oid *const ids[SPARED_COUNT],
	git_oid *out_id, struct error *err)
{
	const git_oid *merged = ids[SPARED_MERGED];
	if (merged && id_equal(merged, ids[SPARED_RUNTIME])) {
		*out_id = ids[SPARED_TREE] ? *ids[SPARED_TREE] : store_empty_tree;
		return true;
	}
	struct tree_view views[SPARED_COUNT] = {{0}};
	bool spared = true;
	for (int i = 0; i < SPARED_COUNT; i++) {
		spared = spared &&
		         tree_view_load(&views[i], sparer->store, ids[i], &sparer->trail, err);
	}
	spared = spared && spare_rows(sparer, views, out_id, err);
	for (int i = 0; i < SPARED_COUNT; i++) {
		tree_view_finish(&views[i]);
	}
	return spared;
}

bool deletions_spare(struct store *store, const struct spared *spared, bool is_base,
	const git_oid *tree, git_oid *out_tree, struct error *err)
{
	struct sparer *sparer = mem_alloc_zero(sizeof(*sparer));
	const git_oid from = *tree;
	const git_oid *const ids[SPARED_COUNT] = {
		&spared->base, &spared->runtime, &spared->merged, &from};
	sparer->store = store;
	sparer->is_base = is_base;
	bool made = spare_folder(sparer, ids, out_tree, err);
	free(sparer);
	return made;
}
