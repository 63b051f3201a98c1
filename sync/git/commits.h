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
	const char *subject; // the message's first line
	const char *author;
	long long time; // in seconds
};

#define AGENT_COMMITS_REFS "refs/acp-broker/agent/"

/* Texts are borrowed; who returns false ends it all. */
struct agent_commits_visitor {
	/* A branch, without what all of them begin with, before its commits. */
	bool (*on_branch)(void *data, const char *branch, const git_oid *tip);
	/* A commit of it that an agent made. */
	bool (*on_commit)(void *data, const struct agent_commit *commit);
	void *data;
};

/*
 * Visits the branches in the order of their names, and of each at most `max` of its
 * commits, the newest first. What is in two branches is visited in both. Blocks.
 */
bool agent_commits_list(struct store *store, size_t max,
	const struct agent_commits_visitor *visitor, struct error *err) ATTR_NODISCARD;

/*
 * Forgets the branches that no sync has brought a commit of since that time, the one of
 * checkpoint_forgotten; 0: none. What only they kept goes with store_prune, and with the next call
 * from the list of shallow commits. One that is still in the sandbox comes again with the next
 * collect, and is told again. The store is locked by the caller.
 */
bool agent_commits_forget(struct store *store, long long before, struct error *err) ATTR_NODISCARD;

#endif
