/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_COMMITS_H
#define SYNC_GIT_COMMITS_H

#include "sync/store.h"

/*
 * The commits that agents made, kept in the store below refs/acp-broker/agent/. Snapshots bring
 * their files; these refs are for users who want the commits themselves: `git fetch STORE
 * refs/acp-broker/agent/BRANCH` works in the user's repository. The store's list of shallow commits
 * says where the history below them begins. Commits of a repository below the workspace's root, for
 * example a submodule, are below refs/acp-broker/agent-in/PATH/. In PATH, "%" and two digits stand
 * for each byte except letters, digits, "_" and "-".
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
	const char *repository; // path in the workspace; "" for the workspace's own
	const char *name;       // without the prefix of the repository's refs
	git_oid tip;
};

enum { AGENT_COMMITS_PATH_MAX = 200 }; // bytes of a PATH in a ref

/*
 * The path of a repository as it appears in refs. If it is too long, returns false and sets
 * `out_text` to "". Does no I/O.
 */
bool agent_commits_path(const char *path, char out_text[AGENT_COMMITS_PATH_MAX + 1]);

/*
 * The refs of all branches, sorted; those of the workspace's own repository come first. The caller
 * frees them with words_free. Blocks.
 */
bool agent_commits_refs(struct store *store, char ***out_names, struct error *err) ATTR_NODISCARD;

/* Texts are borrowed. A callback that returns false ends the visit. */
struct agent_commits_visitor {
	/* Called for a branch, before its commits. */
	bool (*on_branch)(void *data, const struct agent_branch *branch);
	/* Called for each of its commits that an agent made. */
	bool (*on_commit)(void *data, const struct agent_commit *commit);
	void *data;
};

/*
 * Visits the branches in the order of their refs. Of each it visits at most `max` commits, the
 * newest first. A commit in two branches is visited in both. Blocks.
 */
bool agent_commits_list(struct store *store, size_t max,
	const struct agent_commits_visitor *visitor, struct error *err) ATTR_NODISCARD;

/*
 * Forgets the branches to which no sync has brought a commit since `before` (from
 * checkpoint_forgotten; 0: forgets none). store_prune removes the objects that only they kept; the
 * next call removes their entries from the list of shallow commits. A branch that still exists in
 * the sandbox comes again with the next collect, and the user is told again. The caller holds the
 * store's lock.
 */
bool agent_commits_forget(struct store *store, long long before, struct error *err) ATTR_NODISCARD;

#endif
