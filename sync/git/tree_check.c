/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "sync/git/tree_walk.h"
#include "sync/git/trees.h"
#include "sync/snapshot.h"

bool tree_open(struct store *store, const git_oid *id, size_t depth, git_tree **out_tree,
	struct error *err)
{
	if (depth > TREE_DEPTH_MAX) {
		return error_set(err, ERROR_LIMIT, "directories are nested more than %d deep",
			TREE_DEPTH_MAX);
	}
	return store->git->tree_lookup(out_tree, store->repository, id) == 0 ||
	       error_set_git(store->git, err, "reading a tree of %s", store->path);
}

bool tree_path_push(char path[PATH_MAX], const char *name, struct error *err)
{
	size_t length = strlen(path);
	int added = snprintf(path + length, PATH_MAX - length, "%s%s", length ? "/" : "", name);
	return (size_t)added < PATH_MAX - length ||
	       error_set(err, ERROR_LIMIT, "%.200s…: the path is too long", path);
}

struct check {
	struct store *store;
	bool is_commit; // of the agent's
	char path[PATH_MAX];
};

static bool refuse(struct check *check, const char *why, struct error *err)
{
	return error_set_reason(err, ERROR_PROTOCOL, "SECURITY_VIOLATION",
		"the sandbox sent \"%s\": %s", check->path, why);
}

/* git's order: as if the names of directories ended in a slash. */
static bool is_before(const struct git *git, const git_tree_entry *a, const git_tree_entry *b)
{
	const char *names[] = {git->tree_entry_name(a), git->tree_entry_name(b)};
	size_t lengths[] = {strlen(names[0]), strlen(names[1])};
	size_t common = lengths[0] < lengths[1] ? lengths[0] : lengths[1];
	int order = memcmp(names[0], names[1], common);
	if (order != 0) {
		return order < 0;
	}
	if (lengths[0] == lengths[1]) {
		return false;
	}
	bool is_tree_a = git->tree_entry_filemode(a) == GIT_FILEMODE_TREE;
	bool is_tree_b = git->tree_entry_filemode(b) == GIT_FILEMODE_TREE;
	unsigned char end_a = lengths[0] > common ? names[0][common] : is_tree_a ? '/' : '\0';
	unsigned char end_b = lengths[1] > common ? names[1][common] : is_tree_b ? '/' : '\0';
	return end_a < end_b;
}

static bool check_blob(struct check *check, const git_oid *id, bool is_link, struct error *err)
{
	size_t size;
	git_object_t type;
	if (check->store->git->odb_read_header(&size, &type, check->store->odb, id) < 0) {
		return refuse(check, "its content is missing", err);
	}
	if (type != GIT_OBJECT_BLOB) {
		return refuse(check, "its content is none of a file", err);
	}
	if (is_link && (size == 0 || size >= PATH_MAX) && !check->is_commit) {
		return refuse(check, "the link leads nowhere", err);
	}
	return size <= check->store->big_file_bytes || check->is_commit ||
	       error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
		       "the sandbox sent \"%s\": it grew over the limit of big files meanwhile",
		       check->path);
}

static bool check_tree(struct check *check, const git_oid *known, const git_oid *id, size_t depth,
	struct error *err);

static bool check_entry(struct check *check, const git_tree *known, const git_tree_entry *entry,
	size_t depth, struct error *err)
{
	const struct git *git = check->store->git;
	const char *name = git->tree_entry_name(entry);
	const git_oid *id = git->tree_entry_id(entry);
	git_filemode_t mode = git->tree_entry_filemode_raw(entry);
	const git_tree_entry *same = git->tree_entry_byname(known, name);
	if (strchr(name, '/') || !snapshot_path_is_safe(span_of(name))) {
		return refuse(check, "the name is not allowed", err);
	}
	bool is_known = same && git->tree_entry_filemode_raw(same) == mode &&
	                git_oid_is_same(git->tree_entry_id(same), id);
	if (is_known) {
		return true;
	}
	switch ((unsigned)mode) {
	case GIT_FILEMODE_TREE:
		return check_tree(check,
			same && git->tree_entry_filemode(same) == GIT_FILEMODE_TREE
				? git->tree_entry_id(same)
				: &store_empty_tree,
			id, depth + 1, err);
	case ENTRY_FILE:
	case ENTRY_EXECUTABLE:
	case ENTRY_LINK:
		return check_blob(check, id, mode == GIT_FILEMODE_LINK, err);
	case GIT_FILEMODE_COMMIT:
		return check->is_commit || refuse(check, "it is a submodule", err);
	default:
		return refuse(check, "it is neither file, link nor directory", err);
	}
}

static bool check_entries(struct check *check, const git_tree *known, const git_tree *tree,
	size_t depth, struct error *err)
{
	const struct git *git = check->store->git;
	size_t length = strlen(check->path);
	for (size_t i = 0; i < git->tree_entrycount(tree); i++) {
		const git_tree_entry *entry = git->tree_entry_byindex(tree, i);
		const git_tree_entry *before = i > 0 ? git->tree_entry_byindex(tree, i - 1) : NULL;
		if (!tree_path_push(check->path, git->tree_entry_name(entry), err)) {
			return false;
		}
		bool is_double = git->tree_entry_byname(tree, git->tree_entry_name(entry)) != entry;
		if (is_double || (before && !is_before(git, before, entry))) {
			return refuse(check, "the directory is out of order", err);
		}
		if (!check_entry(check, known, entry, depth, err)) {
			return false;
		}
		check->path[length] = '\0';
	}
	return true;
}

static bool check_tree(struct check *check, const git_oid *known, const git_oid *id, size_t depth,
	struct error *err)
{
	const struct git *git = check->store->git;
	git_tree *tree = NULL;
	git_tree *known_tree = NULL;
	size_t size;
	git_object_t type;
	if (git->odb_read_header(&size, &type, check->store->odb, id) < 0 ||
		type != GIT_OBJECT_TREE) {
		return refuse(check, "a directory is missing", err);
	}
	if (size == 0 && depth > 0 && !check->is_commit) {
		return refuse(check, "the directory is empty", err);
	}
	bool checked = false;
	if (tree_open(check->store, known, depth, &known_tree, err)) {
		checked = tree_open(check->store, id, depth, &tree, err);
		if (!checked && err && err->code == ERROR_SYSTEM) {
			refuse(check, "a directory is damaged", err);
		}
	}
	checked = checked && check_entries(check, known_tree, tree, depth, err);
	git->tree_free(known_tree);
	git->tree_free(tree);
	return checked;
}

bool trees_check(struct store *store, const git_oid *known, const git_oid *tree, struct error *err)
{
	struct check check = {.store = store};
	return git_oid_is_same(known, tree) || check_tree(&check, known, tree, 0, err);
}

bool trees_check_commit(
	struct store *store, const git_oid *known, const git_oid *tree, struct error *err)
{
	struct check check = {.store = store, .is_commit = true};
	return check_tree(&check, known, tree, 0, err);
}
