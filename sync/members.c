/* SPDX-License-Identifier: MIT */
#include "sync/members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sync/snapshot_impl.h"

/* A repository below the root, and where the paths in it begin. */
struct nested {
	uint32_t folder; // in the listing
	size_t prefix;   // length of its path from the work tree's root, with its slash
	struct tracked tracked;
};

/* ---- opening ---- */

static bool make_pathspec(
	const struct git *git, const char *const *patterns, git_pathspec **out, struct error *err)
{
	git_strarray array = {(char **)patterns, 0};
	while (patterns && patterns[array.count]) {
		array.count++;
	}
	if (array.count == 0) {
		return true;
	}
	return git->pathspec_new(out, &array) == 0 ||
	       error_set_git(git, err, "reading the patterns of include and exclude");
}

/* Uses the rules and the index of the repository around the root. */
static bool use_repository(struct members *members, struct error *err)
{
	size_t top = strlen(members->repository.top);
	const char *below = members->request->root + top;
	members->prefix = *below ? strlen(below + 1) + 1 : 0;
	tracked_init(
		&members->tracked, members->store, &members->repository, members->request->home);
	return ignore_init(&members->ignore, members->store, &members->repository,
		members->request->home, err);
}

/* Whether the root, or a folder between the top and the root, is ignored. */
static bool root_is_ignored(struct members *members)
{
	char path[PATH_MAX];
	const char *root = members->request->root + strlen(members->repository.top) + 1;
	for (const char *end = root; *end;) {
		end += 1 + strcspn(end + 1, "/");
		text_whole(path, sizeof(path), "%.*s", (int)(end - root), root);
		if (ignore_matches(&members->ignore, path, true)) {
			return true;
		}
	}
	return false;
}

static bool use_rules_alone(struct members *members, struct error *err)
{
	const struct snapshot_request *request = members->request;
	struct user_repository *repository = &members->repository;
	text_whole(repository->top, sizeof(repository->top), "%s", request->root);
	members->prefix = 0;
	tracked_init(&members->tracked, members->store, repository, request->home);
	return ignore_init_elsewhere(&members->ignore, members->store,
		&(struct ignore_elsewhere){request->rules_of, request->root}, request->home, err);
}

/*
 * A repository that ignores the workspace in it (for example a home directory under version
 * control) is not the workspace's.
 */
static bool find_repository(struct members *members, struct error *err)
{
	const char *root = members->request->root;
	if (members->request->rules_of) {
		return use_rules_alone(members, err);
	}
	user_repository_find(&members->repository, root, true);
	if (!use_repository(members, err)) {
		return false;
	}
	if (members->prefix == 0 || !root_is_ignored(members) ||
		tracked_has_below(&members->tracked, root + strlen(members->repository.top) + 1)) {
		return true;
	}
	tracked_finish(&members->tracked);
	user_repository_find(&members->repository, root, false);
	return use_repository(members, err);
}

bool members_init(struct members *members, struct store *store,
	const struct snapshot_request *request, struct error *err)
{
	*members = (struct members){.store = store, .request = request};
	buf_init(&members->nested_paths, NESTED_MAX);
	if (make_pathspec(store->git, request->include, &members->include, err) &&
		make_pathspec(store->git, request->exclude, &members->exclude, err) &&
		find_repository(members, err)) {
		return true;
	}
	members_finish(members);
	return false;
}

void members_finish(struct members *members)
{
	for (size_t i = 0; i < members->nested_count; i++) {
		tracked_finish(&members->nested[i]->tracked);
		free(members->nested[i]);
	}
	free(members->nested);
	buf_finish(&members->nested_paths);
	tracked_finish(&members->tracked);
	members->store->git->pathspec_free(members->include);
	members->store->git->pathspec_free(members->exclude);
}

/* ---- nested repositories ---- */

void members_add_nested(struct members *members, const struct candidate *at)
{
	char path[PATH_MAX];
	struct user_repository repository;
	int length = snprintf(path, sizeof(path), "%s/%.*s", members->repository.top,
		(int)at->folder_length, at->path);
	if (length >= PATH_MAX || at->folder_length <= members->prefix) {
		return;
	}
	path[length - 1] = '\0'; // removes the slash
	if (!user_repository_find(&repository, path, false)) {
		return;
	}
	struct nested *nested = mem_alloc(sizeof(*nested));
	nested->folder = at->folder;
	nested->prefix = at->folder_length;
	tracked_init(&nested->tracked, members->store, &repository, members->request->home);
	members->nested =
		mem_realloc(members->nested, (members->nested_count + 1) * sizeof(struct nested *));
	members->nested[members->nested_count++] = nested;
	nested_add(&members->nested_paths,
		(struct span){at->path + members->prefix, at->folder_length - members->prefix - 1});
}

static struct nested *nested_of(struct members *members, uint32_t folder)
{
	for (size_t i = 0; i < members->nested_count; i++) {
		if (members->nested[i]->folder == folder) {
			return members->nested[i];
		}
	}
	return NULL;
}

/* The innermost repository around the candidate. */
static struct tracked *tracked_of(
	struct members *members, const struct candidate *at, size_t *out_prefix)
{
	uint32_t folder = members->nested_count > 0 ? at->folder : LISTED_NONE;
	while (folder != LISTED_NONE) {
		struct nested *nested = nested_of(members, folder);
		if (nested) {
			*out_prefix = nested->prefix;
			return &nested->tracked;
		}
		folder = at->listing->items[folder].parent;
	}
	*out_prefix = 0;
	return &members->tracked;
}

static bool is_tracked(struct members *members, const struct candidate *at, bool is_folder)
{
	size_t prefix;
	struct tracked *tracked = tracked_of(members, at, &prefix);
	return is_folder ? tracked_has_below(tracked, at->path + prefix)
	                 : tracked_has(tracked, at->path + prefix);
}

/* ---- ignore rules ---- */

/* Whether a folder of the listing is ignored; the listing remembers the answer. */
static bool folder_is_ignored(struct members *members, struct candidate *at, uint32_t folder)
{
	struct listed *listed = &at->listing->items[folder];
	if (folder == 0 || (listed->flags & LISTED_NOT_IGNORED)) {
		return false;
	}
	if (listed->flags & LISTED_IGNORED) {
		return true;
	}
	char path[PATH_MAX];
	memcpy(path, at->path, members->prefix);
	bool is_ignored = listing_path(at->listing, folder, path + members->prefix,
				  sizeof(path) - members->prefix) &&
	                  (folder_is_ignored(members, at, listed->parent) ||
				  ignore_matches(&members->ignore, path, true));
	listed->flags |= is_ignored ? LISTED_IGNORED : LISTED_NOT_IGNORED;
	return is_ignored;
}

static bool is_ignored(struct members *members, struct candidate *at, bool is_folder)
{
	return folder_is_ignored(members, at, at->folder) ||
	       ignore_matches(&members->ignore, at->path, is_folder);
}

/* ---- include and exclude ---- */

static bool matches(const struct members *members, git_pathspec *patterns, const char *path)
{
	return patterns && members->store->git->pathspec_matches_path(
				   patterns, GIT_PATHSPEC_DEFAULT, path) == 1;
}

/* Whether the pattern's part before its first wildcard leads to the folder or below it. */
static bool may_match_below(const char *pattern, const char *folder)
{
	size_t literal = strcspn(pattern, "*?[\\");
	size_t length = strlen(folder);
	size_t common = literal < length ? literal : length;
	return strncmp(pattern, folder, common) == 0 &&
	       (literal <= length || pattern[length] == '/');
}

static bool includes_below(const struct members *members, const char *folder)
{
	const char *const *pattern = members->request->include;
	while (pattern && *pattern) {
		if (may_match_below(*pattern, folder)) {
			return true;
		}
		pattern++;
	}
	return false;
}

/* ---- decisions ---- */

bool members_has_file(struct members *members, struct candidate *at)
{
	const char *path = members_path(members, at);
	if (matches(members, members->exclude, path)) {
		return false;
	}
	if (at->is_in_base || (!members->request->base && is_tracked(members, at, false))) {
		return true;
	}
	return !is_ignored(members, at, false) || is_tracked(members, at, false) ||
	       matches(members, members->include, path);
}

bool members_has_folder(struct members *members, struct candidate *at)
{
	const char *path = members_path(members, at);
	if (matches(members, members->exclude, path)) {
		return false;
	}
	return at->is_in_base || !is_ignored(members, at, true) || is_tracked(members, at, true) ||
	       includes_below(members, path);
}

/* ---- notes ---- */

static void note_one(const struct tracked *tracked, struct snapshot *snapshot)
{
	if (tracked->source == TRACKED_PROGRAM) {
		snapshot_note(snapshot,
			"%s: the git program was asked for the tracked files, because "
			"libgit2 cannot read this repository's index",
			tracked->repository.top);
	} else if (tracked->source == TRACKED_NOTHING) {
		snapshot_note(snapshot,
			"%s: the index could not be read; ignored files are left "
			"out, even tracked ones",
			tracked->repository.top);
	}
}

void members_note(const struct members *members, struct snapshot *snapshot)
{
	note_one(&members->tracked, snapshot);
	for (size_t i = 0; i < members->nested_count; i++) {
		note_one(&members->nested[i]->tracked, snapshot);
	}
}
