/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_COMMITS_H
#define SYNC_GIT_COMMITS_H

#include "sync/store.h"

/*
 * The commits that agents made, kept in the store below refs/acp-broker/agent/. Their
 * files come by the snapshots; these are for who wants the commits themselves:
 * `git fetch STORE refs/acp-broker/agent/BRANCH` works in the user's repository. Where the
 * history that they build upon begins is in the store's list of shallow commits.
 */
struct agent_commit {
	git_oid id;
	const char *branch;  // which it was found by
	const char *subject; // the message's first line
	const char *author;
	long long time; // in seconds
};

/*
 * Visits them, the newest of a branch first, at most `max`; texts are borrowed. The visitor
 * returns false to end it. Blocks.
 */
bool agent_commits_list(struct store *store, size_t max,
	bool (*visit)(void *data, const struct agent_commit *commit), void *data,
	struct error *err) ATTR_NODISCARD;

#endif
