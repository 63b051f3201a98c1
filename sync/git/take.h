/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TAKE_H
#define SYNC_GIT_TAKE_H

#include "sync/conflicts.h"

/*
 * Takes an agent's commits into the user's repository, after a sync has brought their files. HEAD's
 * branch and the index move to the agent's commit; no file is touched. It requires that every file
 * that the commits change is in the work tree as in the last commit, and that each submodule is at
 * the commit they name. Only a command of the user calls this. The caller holds the store's lock.
 * Blocks.
 */
struct take_request {
	struct store *store;
	const char *root; // a real path: the repository, or the part of it that is a workspace
	const char *repository; // path in the workspace; "" for the workspace's own
	const char *const *environment;
	const char *branch;        // the agent's; NULL: the one with the name of HEAD's branch
	const struct list *parked; // of struct parked; may be NULL
	/* Reports a path of the commits that differs in the work tree, and how. */
	void (*on_differs)(void *data, const char *path, const char *how);
	/*
	 * Reports a path that counts as equal because a conflict has parked exactly the commits'
	 * version. A path with a parked held change never counts as equal: the user has not allowed
	 * it.
	 */
	void (*on_parked)(void *data, const char *path);
	void *data;
};

enum { TAKE_NAME_MAX = 300, TAKE_ID_SIZE = 41 };

struct take_result {
	char branch[TAKE_NAME_MAX]; // the user's; "HEAD" if it is detached
	char taken[TAKE_NAME_MAX];  // the agent's
	char old[TAKE_ID_SIZE];     // "": there was no commit
	char now[TAKE_ID_SIZE];
	size_t commits, files;
	bool has_all; // there was nothing to take
};

/*
 * ERROR_CONFIG for a branch without an agent's commit; ERROR_NOT_FOUND without a repository or git;
 * ERROR_UNAVAILABLE if something is in the way, with what to do: then nothing was moved. First
 * undoes the incomplete work of a killed call.
 */
bool take_commits(const struct take_request *request, struct take_result *out_result,
	struct error *err) ATTR_NODISCARD;

/*
 * Moves branch and index back to their state before the last take_commits; also touches no file.
 * ERROR_UNAVAILABLE if HEAD has moved since.
 */
bool take_undo(const struct take_request *request, struct take_result *out_result,
	struct error *err) ATTR_NODISCARD;

#endif
