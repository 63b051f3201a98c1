/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TAKE_IMPL_H
#define SYNC_GIT_TAKE_IMPL_H

#include "sync/git/commits.h"
#include "sync/git/take.h"
#include "sync/git/user_git.h"

/* One take in progress. Ids are texts; a `head` of "" means: there is no commit yet. */
struct take {
	const struct take_request *request;
	struct user_git git;
	char ref[TAKE_NAME_MAX]; // refs/heads/…, or "HEAD" if it is detached
	char head[TAKE_ID_SIZE];
	char taken[TAKE_NAME_MAX]; // the agent's branch
	char *taken_ref;           // owned; in the store; NULL: not found yet
	char tip[TAKE_ID_SIZE];
	char before[TAKE_ID_SIZE], after[TAKE_ID_SIZE]; // trees of the index
	size_t files;
	bool is_locked; // the repository's index is locked
	int lock_fd;    // its lock file, while is_locked
};

/* Returns a name for the tree of a commit; an id of "" is the empty tree. */
const char *take_tree_of(const char id[TAKE_ID_SIZE]);

/* ---- take_index.c: changes the index in a draft beside it ---- */

/* Takes git's own lock of the index; takes over the lock of a killed take. */
bool take_lock(struct take *take, struct error *err) ATTR_NODISCARD;
void take_unlock(struct take *take); // also removes the draft

/* Makes a new draft from the index. */
bool take_draft(struct take *take, struct error *err) ATTR_NODISCARD;
/*
 * Changes those entries of the draft in which `from` and `to` differ, from one to the other. Other
 * entries stay. Fails if one of these does not match `from`.
 */
bool take_move_draft(
	struct take *take, const char *from, const char *to, struct error *err) ATTR_NODISCARD;
bool take_write_tree(
	struct take *take, char out_tree[TAKE_ID_SIZE], struct error *err) ATTR_NODISCARD;
/* Replaces the index by the draft. */
bool take_publish(struct take *take, struct error *err) ATTR_NODISCARD;

/* ---- take_check.c: compares the work tree with the commits ---- */

/*
 * Moves the draft from HEAD to the tip, and compares; reports each path. ERROR_UNAVAILABLE if one
 * is in the way.
 */
bool take_check(struct take *take, struct error *err) ATTR_NODISCARD;

/* ---- take_note.c: the store's note of the last take of a repository ---- */

enum take_state {
	TAKE_NONE,
	TAKE_BEGUN, // branch and index may have moved
	TAKE_DONE,
};

struct take_note {
	enum take_state state;
	char ref[TAKE_NAME_MAX];
	char taken[TAKE_NAME_MAX];
	char old[TAKE_ID_SIZE], now[TAKE_ID_SIZE];
	char before[TAKE_ID_SIZE], after[TAKE_ID_SIZE];
};

enum { TAKE_NOTE_NAME_SIZE = AGENT_COMMITS_PATH_MAX + 16 };

/*
 * The state is part of the name of a file in the store's folder, which only we use. For a
 * repository below the root the name ends in "-" and the repository's path, as it appears in refs.
 */
const char *take_note_name(
	const struct take_request *request, enum take_state state, char name[TAKE_NOTE_NAME_SIZE]);

void take_note_read(const struct take_request *request, struct take_note *out_note);
bool take_note_begin(struct take *take, struct error *err) ATTR_NODISCARD;
/* Changes only the state; TAKE_NONE removes the note. */
bool take_note_set(const struct take_request *request, const struct take_note *note,
	enum take_state state, struct error *err) ATTR_NODISCARD;

#endif
