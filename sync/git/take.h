/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_TAKE_H
#define SYNC_GIT_TAKE_H

#include "sync/conflicts.h"

/*
 * Takes an agent's commits into the user's repository after a sync has brought their files: HEAD's
 * branch and the index move to the agent's commit, and no file is touched. It is done only where
 * each file that the commits change is in the work tree as the last of them has it, and each
 * submodule is at the commit that they give it. Only a command of the user's does so. The store is
 * locked by the caller. Blocks.
 */
struct take_request {
	struct store *store;
	const char *root; // a real path: the repository, or the part of it that is a workspace
	const char *repository; // its path in the workspace; "" for the workspace's own
	const char *const *environment;
	const char *branch;        // of the agent; NULL: the one that HEAD's branch is named
	const struct list *parked; // of struct parked; may be NULL
	/* A path of the commits that the work tree has otherwise, and in which way. */
	void (*on_differs)(void *data, const char *path, const char *how);
	/*
	 * One that counts as equal, for a conflict has parked just the version of the commits. A
	 * path of which a held change is parked never does: the user has not allowed that.
	 */
	void (*on_parked)(void *data, const char *path);
	void *data;
};

enum { TAKE_NAME_MAX = 300, TAKE_ID_SIZE = 41 };

struct take_result {
	char branch[TAKE_NAME_MAX]; // of the user; "HEAD" where it is detached
	char taken[TAKE_NAME_MAX];  // of the agent
	char old[TAKE_ID_SIZE];     // "": there was no commit
	char now[TAKE_ID_SIZE];
	size_t commits, files;
	bool has_all; // nothing was to be taken
};

/*
 * ERROR_CONFIG for a branch that no agent has committed to, ERROR_NOT_FOUND without a repository
 * or git, ERROR_UNAVAILABLE with what to do where something is in the way: nothing has moved then.
 * What a killed call has left half-done is undone first.
 */
bool take_commits(const struct take_request *request, struct take_result *out_result,
	struct error *err) ATTR_NODISCARD;

/*
 * Moves branch and index back to what they were before the last take_commits, and touches no file
 * either. ERROR_UNAVAILABLE where HEAD is not where that has left it.
 */
bool take_undo(const struct take_request *request, struct take_result *out_result,
	struct error *err) ATTR_NODISCARD;

#endif
