/* SPDX-License-Identifier: MIT */
#include "sync/git/trees.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "sync/git/tree_walk.h"

/* ---- comparing ---- */

struct comparison {
	struct store *store;
	bool (*visit)(void *data, const struct tree_change *change, struct error *err);
	void *data;
	char path[PATH_MAX];
};

static bool compare(struct comparison *comparison, const git_oid *from, const git_oid *to,
	size_t depth, struct error *err);

static struct store_entry entry_of(const struct store *store, const git_tree_entry *entry)
{
	if (!entry) {
		return (struct store_entry){.mode = ENTRY_NONE};
	}
	enum entry_mode mode = (enum entry_mode)store->git->tree_entry_filemode(entry);
	return (struct store_entry){mode, *store->git->tree_entry_id(entry)};
}

static bool is_tree(const struct store_entry *entry)
{
	return entry->mode == (enum entry_mode)GIT_FILEMODE_TREE;
}

/* Compares one name in both. `pass` 0 visits deletions, 1 visits additions and changes. */
static bool compare_entry(struct comparison *comparison, const struct store_entry *from,
	const struct store_entry *to, size_t depth, int pass, struct error *err)
{
	struct tree_change change = {.path = comparison->path};
	bool both = is_tree(from) && is_tree(to);
	const git_oid *from_tree = is_tree(from) ? &from->id : &store_empty_tree;
	const git_oid *to_tree = is_tree(to) ? &to->id : &store_empty_tree;
	if (store_entry_equal(from, to)) {
		return true;
	}
	if (both) {
		return pass == 0 || compare(comparison, from_tree, to_tree, depth + 1, err);
	}
	if (pass == 0 && is_tree(from)) {
		return compare(comparison, from_tree, &store_empty_tree, depth + 1, err);
	}
	if (pass == 1 && is_tree(to)) {
		return compare(comparison, &store_empty_tree, to_tree, depth + 1, err);
	}
	change.from = is_tree(from) ? change.from : *from;
	change.to = is_tree(to) ? change.to : *to;
	bool goes = change.to.mode == ENTRY_NONE;
	if (change.from.mode == change.to.mode && goes) {
		return true;
	}
	return goes == (pass == 0) ? comparison->visit(comparison->data, &change, err) : true;
}

static bool compare_all(struct comparison *comparison, const git_tree *tree, const git_tree *other,
	size_t depth, int pass, struct error *err)
{
	const struct git *git = comparison->store->git;
	size_t length = strlen(comparison->path);
	for (size_t i = 0; i < git->tree_entrycount(tree); i++) {
		const git_tree_entry *entry = git->tree_entry_byindex(tree, i);
		const char *name = git->tree_entry_name(entry);
		struct store_entry mine = entry_of(comparison->store, entry);
		struct store_entry others =
			entry_of(comparison->store, git->tree_entry_byname(other, name));
		if (!tree_path_push(comparison->path, name, err)) {
			return false;
		}
		bool compared = compare_entry(comparison, pass == 0 ? &mine : &others,
			pass == 0 ? &others : &mine, depth, pass, err);
		comparison->path[length] = '\0';
		if (!compared) {
			return false;
		}
	}
	return true;
}

static bool compare(struct comparison *comparison, const git_oid *from, const git_oid *to,
	size_t depth, struct error *err)
{
	git_tree *from_tree = NULL;
	git_tree *to_tree = NULL;
	bool compared = tree_open(comparison->store, from, depth, &from_tree, err) &&
	                tree_open(comparison->store, to, depth, &to_tree, err) &&
	                compare_all(comparison, from_tree, to_tree, depth, 0, err) &&
	                compare_all(comparison, to_tree, from_tree, depth, 1, err);
	comparison->store->git->tree_free(from_tree);
	comparison->store->git->tree_free(to_tree);
	return compared;
}

bool trees_compare(struct store *store, const git_oid *from, const git_oid *to,
	bool (*visit)(void *data, const struct tree_change *change, struct error *err), void *data,
	struct error *err)
{
	struct comparison comparison = {.store = store, .visit = visit, .data = data};
	return id_equal(from, to) || compare(&comparison, from, to, 0, err);
}

/* ---- side trees ---- */

/* The known pair of trees, opened, because many names are looked up. */
struct known_trees {
	git_tree *whole, *side;
};

static bool known_open(struct store *store, const struct side_pair *known, struct known_trees *out,
	struct error *err)
{
	*out = (struct known_trees){NULL, NULL};
	return tree_open(store, &known->whole, 0, &out->whole, err) &&
	       tree_open(store, &known->side, 0, &out->side, err);
}

static void known_close(const struct store *store, struct known_trees *known)
{
	store->git->tree_free(known->whole);
	store->git->tree_free(known->side);
}

/* The subtree in both; the empty trees if either lacks it. */
static struct side_pair find_known(
	const struct store *store, const struct known_trees *known, const char *name)
{
	struct store_entry a = entry_of(store, store->git->tree_entry_byname(known->whole, name));
	struct store_entry b = entry_of(store, store->git->tree_entry_byname(known->side, name));
	return is_tree(&a) && is_tree(&b) ? (struct side_pair){a.id, b.id}
	                                  : (struct side_pair){store_empty_tree, store_empty_tree};
}

static bool strip(struct store *store, const struct side_pair *known, const git_oid *whole,
	size_t depth, git_oid *out_side, struct error *err);

static bool strip_entry(struct store *store, const struct known_trees *known,
	const git_tree_entry *tree_entry, size_t depth, git_treebuilder *builder, struct error *err)
{
	const char *name = store->git->tree_entry_name(tree_entry);
	struct store_entry entry = entry_of(store, tree_entry);
	git_oid side = entry.id;
	if (is_tree(&entry)) {
		struct side_pair below = find_known(store, known, name);
		if (!strip(store, &below, &entry.id, depth + 1, &side, err)) {
			return false;
		}
	}
	bool is_left_out =
		entry.mode == ENTRY_BIG || (is_tree(&entry) && id_equal(&side, &store_empty_tree));
	int result = 0;
	if (is_left_out) {
		result = store->git->treebuilder_remove(builder, name);
	} else if (!id_equal(&side, &entry.id)) {
		result = store->git->treebuilder_insert(
			NULL, builder, name, &side, (git_filemode_t)entry.mode);
	}
	return result == 0 || error_set_git(store->git, err, "making a tree of %s", store->path);
}

static bool strip(struct store *store, const struct side_pair *known, const git_oid *whole,
	size_t depth, git_oid *out_side, struct error *err)
{
	const struct git *git = store->git;
	struct known_trees trees = {NULL, NULL};
	git_tree *tree = NULL;
	git_treebuilder *builder = NULL;
	if (id_equal(&known->whole, whole)) {
		*out_side = known->side;
		return true;
	}
	bool stripped = tree_open(store, whole, depth, &tree, err) &&
	                known_open(store, known, &trees, err) &&
	                (git->treebuilder_new(&builder, store->repository, tree) == 0 ||
				error_set_git(git, err, "making a tree of %s", store->path));
	for (size_t i = 0; stripped && i < git->tree_entrycount(tree); i++) {
		stripped = strip_entry(
			store, &trees, git->tree_entry_byindex(tree, i), depth, builder, err);
	}
	if (stripped && git->treebuilder_write(out_side, builder) < 0) {
		stripped = error_set_git(git, err, "writing a tree to %s", store->path);
	}
	git->treebuilder_free(builder);
	known_close(store, &trees);
	git->tree_free(tree);
	return stripped;
}

bool trees_strip(struct store *store, const struct side_pair *known, const git_oid *whole,
	git_oid *out_side, struct error *err)
{
	return strip(store, known, whole, 0, out_side, err);
}

/* ---- big files ---- */

void big_files_add(
	struct list *files, const char *path, const struct store_entry *entry, uint64_t size)
{
	struct big_file *file = mem_alloc_zero(sizeof(*file));
	file->path = mem_strdup(path);
	file->entry = *entry;
	file->size = size;
	list_append(files, &file->link);
}

struct big_file *big_files_find(const struct list *files, const char *path)
{
	LIST_FOR_EACH(file, (struct list *)files, struct big_file, link) {
		if (strcmp(file->path, path) == 0) {
			return file;
		}
	}
	return NULL;
}

void big_files_finish(struct list *files)
{
	LIST_FOR_EACH(file, files, struct big_file, link) {
		list_remove(&file->link);
		free(file->path);
		free(file);
	}
}

static bool add_if_big(void *data, const struct tree_change *change, struct error *err)
{
	if (change->to.mode == ENTRY_BIG) {
		big_files_add(data, change->path, &change->to, 0);
	}
	return true;
}

bool trees_list_big(
	struct store *store, const git_oid *whole, struct list *out_files, struct error *err)
{
	return trees_compare(store, &store_empty_tree, whole, add_if_big, out_files, err);
}

bool trees_join(struct store *store, const git_oid *side, const struct list *files,
	git_oid *out_whole, struct error *err)
{
	const struct git *git = store->git;
	git_tree *tree = NULL;
	size_t count = 0;
	*out_whole = *side;
	LIST_FOR_EACH(file, (struct list *)files, struct big_file, link) {
		count += file->entry.mode != ENTRY_NONE;
	}
	if (count == 0) {
		return true;
	}
	git_tree_update *updates = mem_alloc_zero(count * sizeof(*updates));
	size_t at = 0;
	LIST_FOR_EACH(added, (struct list *)files, struct big_file, link) {
		if (added->entry.mode != ENTRY_NONE) {
			updates[at++] = (git_tree_update){.action = GIT_TREE_UPDATE_UPSERT,
				.id = added->entry.id,
				.filemode = (git_filemode_t)added->entry.mode,
				.path = added->path};
		}
	}
	bool joined = tree_open(store, side, 0, &tree, err);
	if (joined &&
		git->tree_create_updated(out_whole, store->repository, tree, count, updates) < 0) {
		joined = error_set_git(git, err, "taking the sandbox's big files in");
		if (err) {
			err->code = ERROR_PROTOCOL;
		}
	}
	git->tree_free(tree);
	free(updates);
	return joined;
}
