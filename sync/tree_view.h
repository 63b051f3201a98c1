/* SPDX-License-Identifier: MIT */
#ifndef SYNC_TREE_VIEW_H
#define SYNC_TREE_VIEW_H

#include <limits.h>

#include "sync/store.h"

/*
 * The entries of one tree object in the store, sorted by name. A view exists only if the tree is
 * well-formed and its names are safe, whoever made it. So code that works on views never meets
 * "..", .git, or one name twice.
 */
enum {
	TREE_VIEW_FOLDER = 040000, // the mode of a folder; other modes are those of enum entry_mode
	TREE_VIEW_BYTES_MAX = 64 << 20, // of one tree object
	TREE_VIEW_DEPTH_MAX = 1000,     // nested folders
	TREE_VIEW_SIDES_MAX = 5,
};

struct tree_view_entry {
	struct span name; // borrowed from the view
	unsigned mode;
	git_oid id;
};

struct tree_view {
	const struct git *git;
	git_odb_object *object;          // owned; contains the names; may be NULL
	struct tree_view_entry *entries; // owned; sorted by name, bytewise
	size_t count;
};

/* The current place of a walk: a path below the root, "" for the root itself. */
struct trail {
	char path[PATH_MAX];
	size_t len;
	size_t depth;
};

/* ERROR_PROTOCOL, naming the path, if it gets too long or too deep. */
bool trail_push(
	struct trail *trail, struct span name, size_t *out_mark, struct error *err) ATTR_NODISCARD;
void trail_pop(struct trail *trail, size_t mark);

/*
 * Loads the tree `id`, which is at `trail`; NULL is an empty tree. ERROR_PROTOCOL, naming the path,
 * if it has something that no snapshot may contain; ERROR_LIMIT over TREE_VIEW_BYTES_MAX. Finish
 * the view in any case.
 */
bool tree_view_load(struct tree_view *view, struct store *store, const git_oid *id,
	const struct trail *trail, struct error *err) ATTR_NODISCARD;
void tree_view_finish(struct tree_view *view);

/* One name on all sides; NULL for a side without it. */
struct tree_view_row {
	struct span name;
	const struct tree_view_entry *sides[TREE_VIEW_SIDES_MAX];
};

/* Walks several views side by side, name by name. Set `at` to zero before the first call. */
struct tree_view_walk {
	const struct tree_view *views;
	size_t count; // up to TREE_VIEW_SIDES_MAX
	size_t at[TREE_VIEW_SIDES_MAX];
};
bool tree_view_next(struct tree_view_walk *walk, struct tree_view_row *out_row);

/* The file or link of an entry; a mode of 0 for a folder or NULL. */
struct store_entry tree_view_leaf(const struct tree_view_entry *entry);
/* The tree of a folder; NULL for any other entry. */
const git_oid *tree_view_folder(const struct tree_view_entry *entry);

/* Whether two entries are equal except for their names; NULL is an absent entry. */
bool tree_view_is_same(const struct tree_view_entry *a, const struct tree_view_entry *b);

/* Writes a tree object with these entries, in any order; sorts the array. */
bool tree_view_write(struct store *store, struct tree_view_entry *entries, size_t count,
	git_oid *out_id, struct error *err) ATTR_NODISCARD;

/* Sets ERROR_PROTOCOL: says what is wrong with `name` at the trail, in printable characters. */
bool tree_view_refuse(
	const struct trail *trail, struct span name, const char *what, struct error *err);

#endif
