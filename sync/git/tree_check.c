/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "sync/git/tree_walk.h"
#include "sync/git/trees.h"
#include "sync/snapshot.h"

/* ---- the bytes of one tree ---- */

struct raw_entry {
	unsigned mode;
	struct span name;
};

/* "MODE NAME", NUL, the id. */
static bool take_entry(struct span *bytes, struct raw_entry *out)
{
	unsigned mode = 0;
	size_t at = 0;
	for (; at < bytes->len && bytes->data[at] >= '0' && bytes->data[at] <= '7' && at < 6;
		at++) {
		mode = mode * 8 + (unsigned)(bytes->data[at] - '0');
	}
	if (at == 0 || at == bytes->len || bytes->data[at] != ' ' || bytes->data[0] == '0') {
		return false;
	}
	const char *name = bytes->data + at + 1;
	const char *end = memchr(name, '\0', bytes->len - at - 1);
	size_t used = end ? (size_t)(end - bytes->data) + 1 + GIT_OID_RAWSZ : SIZE_MAX;
	if (used > bytes->len) {
		return false;
	}
	*out = (struct raw_entry){mode, {name, (size_t)(end - name)}};
	*bytes = (struct span){bytes->data + used, bytes->len - used};
	return true;
}

static bool mode_is_allowed(unsigned mode, bool is_commit)
{
	return mode == GIT_FILEMODE_TREE || mode == ENTRY_FILE || mode == ENTRY_EXECUTABLE ||
	       mode == ENTRY_LINK || (mode == GIT_FILEMODE_COMMIT && is_commit);
}

static bool name_is_allowed(struct span name)
{
	return snapshot_path_is_safe(name) && !memchr(name.data, '/', name.len);
}

/* git's order: names of directories compare as if they ended in a slash. */
static bool raw_is_before(const struct raw_entry *a, const struct raw_entry *b)
{
	size_t common = a->name.len < b->name.len ? a->name.len : b->name.len;
	int order = memcmp(a->name.data, b->name.data, common);
	if (order != 0 || a->name.len == b->name.len) {
		return order < 0;
	}
	unsigned char end = a->mode == GIT_FILEMODE_TREE ? '/' : '\0';
	unsigned char other = b->mode == GIT_FILEMODE_TREE ? '/' : '\0';
	end = a->name.len > common ? (unsigned char)a->name.data[common] : end;
	other = b->name.len > common ? (unsigned char)b->name.data[common] : other;
	return end < other;
}

bool trees_check_bytes(struct span bytes, bool is_commit, struct error *err)
{
	struct raw_entry before = {0};
	while (bytes.len > 0) {
		struct raw_entry entry;
		const char *why = !take_entry(&bytes, &entry)    ? "is damaged"
		                  : !name_is_allowed(entry.name) ? "has a name that is not allowed"
		                  : !mode_is_allowed(entry.mode, is_commit)
		                          ? "has an entry other than a file, link or directory"
		                  : before.mode && !raw_is_before(&before, &entry)
		                          ? "is out of order"
		                          : NULL;
		if (why) {
			return error_set_reason(err, ERROR_PROTOCOL, "SECURITY_VIOLATION",
				"the sandbox sent a directory that %s", why);
		}
		before = entry;
	}
	return true;
}

/* ---- whole trees ---- */

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
	bool is_commit; // a commit of the agent
	char path[PATH_MAX];
};

static bool refuse(struct check *check, const char *why, struct error *err)
{
	return error_set_reason(err, ERROR_PROTOCOL, "SECURITY_VIOLATION",
		"the sandbox sent \"%s\": %s", check->path, why);
}

static bool check_blob(struct check *check, const git_oid *id, bool is_link, struct error *err)
{
	size_t size;
	git_object_t type;
	if (check->store->git->odb_read_header(&size, &type, check->store->odb, id) < 0) {
		return refuse(check, "its content is missing", err);
	}
	if (type != GIT_OBJECT_BLOB) {
		return refuse(check, "its content is not that of a file", err);
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
	                id_equal(git->tree_entry_id(same), id);
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
		if (!tree_path_push(check->path, git->tree_entry_name(entry), err)) {
			return false;
		}
		if (git->tree_entry_byname(tree, git->tree_entry_name(entry)) != entry) {
			return refuse(check, "its directory has this name twice", err);
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
	return id_equal(known, tree) || check_tree(&check, known, tree, 0, err);
}

bool trees_check_commit(
	struct store *store, const git_oid *known, const git_oid *tree, struct error *err)
{
	struct check check = {.store = store, .is_commit = true};
	return check_tree(&check, known, tree, 0, err);
}
