/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_COMMITS_H
#define SYNC_GIT_COMMITS_H

#include "sync/store.h"

/*
 * The commits that agents made, kept in the store below refs/acp-broker/agent/. Their
 * files come by the snapshots; these are for who wants the commits themselves:
 * `git fetch STORE refs/acp-broker/agent/BRANCH` works in the user's repository. Where the
 * history that they build upon begins is in the store's list of shallow commits. Those of a
 * repository below the workspace's root, a submodule say, are below refs/acp-broker/agent-in/PATH/;
 * in that PATH "%" and two digits stand for each byte but letters, digits, "_" and "-".
 */
struct agent_commit {
	git_oid id;
	const char *subject; // the message's first line
	const char *author;
	long long time; // in seconds
};

#define AGENT_COMMITS_REFS "refs/acp-broker/agent/"
#define AGENT_COMMITS_REFS_IN "refs/acp-broker/agent-in/"

/* Texts are borrowed. */
struct agent_branch {
	const char *ref;
	const char *repository; // its path in the workspace; "" for the workspace's own
	const char *name;       // without what the refs of the repository begin with
	git_oid tip;
};

enum { AGENT_COMMITS_PATH_MAX = 200 }; // bytes of a PATH in a ref

/*
 * The path of a repository as refs have it; false where that is too long, and then `out_text` is
 * "". Pure.
 */
bool agent_commits_path(const char *path, char out_text[AGENT_COMMITS_PATH_MAX + 1]);

/*
 * The refs of all branches, in their order, those of the workspace's own repository first. The
 * caller frees them with words_free. Blocks.
 */
bool agent_commits_refs(struct store *store, char ***out_names, struct error *err) ATTR_NODISCARD;

/* Texts are borrowed; who returns false ends it all. */
struct agent_commits_visitor {
	/* A branch, before its commits. */
	bool (*on_branch)(void *data, const struct agent_branch *branch);
	/* A commit of it that an agent made. */
	bool (*on_commit)(void *data, const struct agent_commit *commit);
	void *data;
};

/*
 * Visits the branches in the order of their refs, and of each at most `max` of its
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
