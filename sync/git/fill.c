/* SPDX-License-Identifier: MIT */
#include "sync/git/git.h"
#include "sync/git/tree_walk.h"

/*
 * If the workspace is a part of a repository, the commits below an agent's commits have files that
 * are neither in the runtime's root nor in a snapshot. These belong to the user. So they are not
 * transferred, but copied from the user's repository.
 */
struct filling {
	const struct git *git;
	struct store *store;
	git_odb *from; // the user's repository
};

static bool copy_object(const struct filling *filling, const git_oid *id, struct error *err)
{
	const struct git *git = filling->git;
	git_odb_object *object = NULL;
	git_oid written;
	if (git->odb_exists(filling->store->odb, id)) {
		return true;
	}
	bool ok = git->odb_read(&object, filling->from, id) == 0 &&
	          git->odb_write(&written, filling->store->odb, git->odb_object_data(object),
			  git->odb_object_size(object), git->odb_object_type(object)) == 0;
	if (!ok) {
		error_set_git(git, err, "copying the data that the agent's commits are based on");
	}
	git->odb_object_free(object);
	return ok;
}

static bool fill(const struct filling *filling, const git_oid *id, size_t depth, struct error *err)
{
	const struct git *git = filling->git;
	git_tree *tree = NULL;
	if (!copy_object(filling, id, err) || !tree_open(filling->store, id, depth, &tree, err)) {
		return false;
	}
	bool ok = true;
	for (size_t i = 0; ok && i < git->tree_entrycount(tree); i++) {
		const git_tree_entry *entry = git->tree_entry_byindex(tree, i);
		git_filemode_t mode = git->tree_entry_filemode(entry);
		if (mode == GIT_FILEMODE_TREE) {
			ok = fill(filling, git->tree_entry_id(entry), depth + 1, err);
		} else if (mode != GIT_FILEMODE_COMMIT) {
			ok = copy_object(filling, git->tree_entry_id(entry), err);
		}
	}
	git->tree_free(tree);
	return ok;
}

bool git_fill_tree(struct git_transport *git, const git_oid *tree, struct error *err)
{
	struct filling filling = {.git = git->store.git, .store = &git->store};
	git_repository *repository = NULL;
	bool ok = filling.git->repository_open_ext(&repository, git->history->git_folder,
			  GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
	          filling.git->repository_odb(&filling.from, repository) == 0;
	ok = ok ? fill(&filling, tree, 0, err)
	        : error_set_git(filling.git, err, "reading the workspace's repository");
	filling.git->odb_free(filling.from);
	filling.git->repository_free(repository);
	return ok;
}
