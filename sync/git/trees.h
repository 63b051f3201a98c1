/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TREES_H
#define SYNC_GIT_TREES_H

#include "base/list.h"
#include "sync/store.h"

/*
 * Trees for the transport. A snapshot has big files as entries of their own kind. The runtime's git
 * does not know these; it has the "side tree", which is the snapshot without big files. Blocks. If
 * a similar tree is known, both are walked together, so that only the difference costs time.
 */

/* A path that differs between two trees, with its entry in each; ENTRY_NONE if absent. */
struct tree_change {
	const char *path;
	struct store_entry from, to;
};

/*
 * Visits every file, link and big file that differs. Deletions of a directory come before new
 * entries in it. The visitor returns false to stop, with err set.
 */
bool trees_compare(struct store *store, const git_oid *from, const git_oid *to,
	bool (*visit)(void *data, const struct tree_change *change, struct error *err), void *data,
	struct error *err) ATTR_NODISCARD;

/* A snapshot and its side tree. */
struct side_pair {
	git_oid whole, side;
};

/* The side tree of `whole`; `known` is the pair of a similar tree, or of the empty one. */
bool trees_strip(struct store *store, const struct side_pair *known, const git_oid *whole,
	git_oid *out_side, struct error *err) ATTR_NODISCARD;

struct big_file {
	struct list link; // the list of big files
	char *path;       // owned
	struct store_entry entry;
	uint64_t size; // 0 if unknown
	bool is_left;  // it keeps the base's entry, which may be small, or absent
};
void big_files_add(
	struct list *files, const char *path, const struct store_entry *entry, uint64_t size);
/* NULL if there is none at that path. */
struct big_file *big_files_find(const struct list *files, const char *path);
void big_files_finish(struct list *files);

/* The big files of a tree. */
bool trees_list_big(struct store *store, const git_oid *whole, struct list *out_files,
	struct error *err) ATTR_NODISCARD;

/* The reverse of trees_strip. ERROR_PROTOCOL if a big file has no place in the tree. */
bool trees_join(struct store *store, const git_oid *side, const struct list *files,
	git_oid *out_whole, struct error *err) ATTR_NODISCARD;

/*
 * Checks that a tree from a runtime can be a snapshot: complete in the store, in git's order, with
 * only allowed names, modes and sizes. Parts that are also in `known` are not checked.
 * ERROR_PROTOCOL, naming the path; ERROR_LIMIT for a file over the big-file limit and for a tree
 * that is too deep.
 */
bool trees_check(struct store *store, const git_oid *known, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

/*
 * Checks the bytes of a tree before it is in the store: names, order and modes, with the rules of
 * trees_check or trees_check_commit. ERROR_PROTOCOL.
 */
bool trees_check_bytes(struct span bytes, bool is_commit, struct error *err) ATTR_NODISCARD;

/*
 * Like trees_check, for a tree of the agent's commits, which may have submodules and files of any
 * size.
 */
bool trees_check_commit(struct store *store, const git_oid *known, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

#endif
