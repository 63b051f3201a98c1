/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TREES_H
#define SYNC_GIT_TREES_H

#include "base/list.h"
#include "sync/store.h"

/*
 * Trees as the transport needs them. A snapshot has its big files as entries of
 * their own kind; the runtime's git knows nothing of them, so what is there is the
 * "side tree": the snapshot without them. Blocks; a tree is walked along with
 * one that is like it wherever there is one, so that only the difference costs time.
 */

/* A path that differs between two trees, and what it is in each; nothing: ENTRY_NONE. */
struct tree_change {
	const char *path;
	struct store_entry from, to;
};

/*
 * Visits every file, link and big file that differs, deletions of a directory before what is
 * new in it. The visitor returns false to end it, with err set.
 */
bool trees_compare(struct store *store, const git_oid *from, const git_oid *to,
	bool (*visit)(void *data, const struct tree_change *change, struct error *err), void *data,
	struct error *err) ATTR_NODISCARD;

/* A snapshot and its side tree. */
struct side_pair {
	git_oid whole, side;
};

/* The side tree of `whole`; `known` is of a tree like it, or of the empty one. */
bool trees_strip(struct store *store, const struct side_pair *known, const git_oid *whole,
	git_oid *out_side, struct error *err) ATTR_NODISCARD;

struct big_file {
	struct list link; // the list of them
	char *path;       // owned
	struct store_entry entry;
	uint64_t size; // 0 where it is not known
	bool is_left;  // it has the entry of the base, which may be small, or none
};
void big_files_add(
	struct list *files, const char *path, const struct store_entry *entry, uint64_t size);
/* NULL: there is none at that path. */
struct big_file *big_files_find(const struct list *files, const char *path);
void big_files_finish(struct list *files);

/* The big files of a tree. */
bool trees_list_big(struct store *store, const git_oid *whole, struct list *out_files,
	struct error *err) ATTR_NODISCARD;

/* The other way around. ERROR_PROTOCOL where a big file has no place in the tree. */
bool trees_join(struct store *store, const git_oid *side, const struct list *files,
	git_oid *out_whole, struct error *err) ATTR_NODISCARD;

/*
 * Whether a tree that a runtime has sent is one that a snapshot can be: whole in the
 * store, in git's order, with no name, mode or size that is not allowed. What is as in `known`
 * is taken to be right. ERROR_PROTOCOL, naming the path; ERROR_LIMIT for a file over
 * the big-file limit and for too deep a tree.
 */
bool trees_check(struct store *store, const git_oid *known, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

/*
 * Whether the bytes of a tree are one, before it is in the store: names, order and modes, as
 * trees_check wants them, or trees_check_commit. ERROR_PROTOCOL.
 */
bool trees_check_bytes(struct span bytes, bool is_commit, struct error *err) ATTR_NODISCARD;

/* The same of a tree of the agent's commits, which may have submodules and files of any size. */
bool trees_check_commit(struct store *store, const git_oid *known, const git_oid *tree,
	struct error *err) ATTR_NODISCARD;

#endif
