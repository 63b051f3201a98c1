/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TREE_FIXTURE_H
#define TESTS_UNIT_TREE_FIXTURE_H

#include "tests/unit/store_fixture.h"

/*
 * Trees as text. A line is a path, a sign of its kind, and its content:
 * "a=text", "run*=text" for an executable, "link@=target", "big#=text" for a big file,
 * "big!=text" for a big executable one.
 */
git_oid tree_make(struct store *store, const char *const *lines);
#define TREE(store, ...) tree_make(store, (const char *const[]){__VA_ARGS__, NULL})

/* The lines of a tree, in the order of names, each with a newline; the caller frees it. */
char *tree_text(struct store *store, const git_oid *tree);

/* Makes a tree of a real folder in a simple way; leaves out names that never sync. */
git_oid tree_of_folder(struct store *store, const char *root);

/* Writes the lines to a real folder. */
void tree_write(const char *root, const char *const *lines);

/* Removes all that is in a folder. */
void tree_clear(const char *root);
/* How many files below a folder have this in their name, and this text unless that is NULL. */
size_t tree_count(const char *root, const char *name_part, const char *text);

/* Applies the change from one tree to another to a real folder; it must leave no path unchanged. */
void tree_apply(struct store *store, const char *root, const git_oid *from, const git_oid *to);

/* Every file and link of a tree, in the order in which a walk visits the folders. */
struct leaf {
	char path[128];
	struct store_entry entry;
};
size_t tree_leaves(struct store *store, const git_oid *tree, struct leaf *out, size_t max);

bool tree_equal(const git_oid *a, const git_oid *b);

#endif
