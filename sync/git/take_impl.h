/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TAKE_IMPL_H
#define SYNC_GIT_TAKE_IMPL_H

#include "sync/git/commits.h"
#include "sync/git/take.h"
#include "sync/git/user_git.h"

/* One take under way. Ids are texts; "" for HEAD: there is no commit yet. */
struct take {
	const struct take_request *request;
	struct user_git git;
	char ref[TAKE_NAME_MAX]; // refs/heads/…, or "HEAD" where it is detached
	char head[TAKE_ID_SIZE];
	char taken[TAKE_NAME_MAX]; // the agent's branch
	char *taken_ref;           // owned; in the store; NULL: it is not found yet
	char tip[TAKE_ID_SIZE];
	char before[TAKE_ID_SIZE], after[TAKE_ID_SIZE]; // trees of the index
	size_t files;
	bool is_locked; // the repository's index
	int lock_fd;    // of its lock, while it is
};

/* What it was a commit's tree can be named by. */
const char *take_tree_of(const char id[TAKE_ID_SIZE]);

/* ---- take_index.c: the index, which is changed in a draft beside it ---- */

/* Takes git's own lock of the index; a lock that a killed take has left is taken over. */
bool take_lock(struct take *take, struct error *err) ATTR_NODISCARD;
void take_unlock(struct take *take); // also removes the draft

/* Makes the draft anew from the index. */
bool take_draft(struct take *take, struct error *err) ATTR_NODISCARD;
/* Where the draft is as in the tree `from`, it becomes as in `to`; else it stays, or this fails. */
bool take_move_draft(
	struct take *take, const char *from, const char *to, struct error *err) ATTR_NODISCARD;
bool take_write_tree(
	struct take *take, char out_tree[TAKE_ID_SIZE], struct error *err) ATTR_NODISCARD;
/* The draft becomes the index. */
bool take_publish(struct take *take, struct error *err) ATTR_NODISCARD;

/* ---- take_check.c: whether the work tree has what the commits have ---- */

/*
 * Moves the draft from HEAD to the tip, and compares; tells of each path. ERROR_UNAVAILABLE where
 * one is in the way.
 */
bool take_check(struct take *take, struct error *err) ATTR_NODISCARD;

/* ---- take_note.c: what the last take of a repository did, in the store ---- */

enum take_state {
	TAKE_NONE,
	TAKE_BEGUN, // branch and index may have moved or not
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
 * A state is the name of a file in the store's folder, which is ours alone; that of a repository
 * below the root ends in "-" and its path, as refs have it.
 */
const char *take_note_name(
	const struct take_request *request, enum take_state state, char name[TAKE_NOTE_NAME_SIZE]);

void take_note_read(const struct take_request *request, struct take_note *out_note);
bool take_note_begin(struct take *take, struct error *err) ATTR_NODISCARD;
/* Changes the state alone; TAKE_NONE removes it. */
bool take_note_set(const struct take_request *request, const struct take_note *note,
	enum take_state state, struct error *err) ATTR_NODISCARD;

#endif
