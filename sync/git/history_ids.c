/* SPDX-License-Identifier: MIT */
#include "sync/git/history.h"
#include "sync/git/tree_walk.h"

struct id_walk {
	const struct git *git;
	git_repository *repository;
	struct id_set *ids;
	git_odb *odb; // of a partial clone, which lacks objects; else NULL
};

static void add_tree(const struct id_walk *walk, const git_oid *id, size_t depth)
{
	const struct git *git = walk->git;
	git_tree *tree = NULL;
	if (depth > TREE_DEPTH_MAX || git->tree_lookup(&tree, walk->repository, id) < 0) {
		return;
	}
	for (size_t i = 0; i < git->tree_entrycount(tree); i++) {
		const git_tree_entry *entry = git->tree_entry_byindex(tree, i);
		git_filemode_t mode = git->tree_entry_filemode(entry);
		if (mode == GIT_FILEMODE_TREE) {
			add_tree(walk, git->tree_entry_id(entry), depth + 1);
		} else if (mode != GIT_FILEMODE_COMMIT &&
			   (!walk->odb || git->odb_exists_ext(walk->odb, git->tree_entry_id(entry),
						  GIT_ODB_LOOKUP_NO_REFRESH) == 1)) {
			id_set_add(walk->ids, git->tree_entry_id(entry));
		}
	}
	git->tree_free(tree);
}

static void add_head(const struct id_walk *walk, const char *hex)
{
	const struct git *git = walk->git;
	git_commit *commit = NULL;
	git_oid id;
	if (git->oid_fromstr(&id, hex) == 0 &&
		git->commit_lookup(&commit, walk->repository, &id) == 0) {
		add_tree(walk, git->commit_tree_id(commit), 0);
	}
	git->commit_free(commit);
}

void history_list_head(const struct history *history, struct id_set *out_ids)
{
	struct id_walk walk = {.git = git_open(NULL), .ids = out_ids};
	if (!walk.git) {
		return;
	}
	if (history->id[0] &&
		walk.git->repository_open_ext(&walk.repository, history->git_folder,
			GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
		(!*history->promisor ||
			walk.git->repository_odb(&walk.odb, walk.repository) == 0)) {
		add_head(&walk, history->id);
	}
	walk.git->odb_free(walk.odb);
	walk.git->repository_free(walk.repository);
	git_close();
}
