/* SPDX-License-Identifier: MIT */
#include "sync/rsync/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/text.h"
#include "sync/ignore.h"
#include "sync/rsync/ignore_files.h"
#include "sync/tree_view.h"

void filter_init(struct filter *filter)
{
	*filter = (struct filter){0};
}

void filter_finish(struct filter *filter)
{
	rules_finish(&filter->ignores);
	rules_finish(&filter->all);
}

/* ---- the ignore rules ---- */

static uint64_t print_files(const struct ignore_files *files)
{
	uint64_t print = HASH_START;
	for (size_t i = 0; i < files->count; i++) {
		print = hash_text(print, files->items[i].folder);
		print = hash_bytes(print, buf_span(&files->items[i].text));
	}
	return print;
}

uint64_t filter_print(const char *mirror)
{
	struct ignore_files files;
	ignore_files_read(&files, mirror);
	uint64_t print = print_files(&files);
	ignore_files_finish(&files);
	return print;
}

/*
 * Adds rules that are in no .gitignore file of the root; ignore_init_elsewhere puts them into the
 * store.
 */
static bool add_user_rules(struct rules *rules, struct store *store,
	const struct filter_request *request, struct error *err)
{
	struct ignore ignore;
	struct buf text;
	const struct ignore_elsewhere places = {request->local_root, request->mirror};
	if (!ignore_init_elsewhere(&ignore, store, &places, request->home, err)) {
		return false;
	}
	buf_init(&text, FILTER_BYTES_MAX);
	int fd ATTR_CLEANUP(fd_cleanup) =
		openat(store->folder_fd, "info/exclude", O_RDONLY | O_CLOEXEC);
	char *to = fd < 0 ? NULL : buf_reserve(&text, FILTER_IGNORE_FILE_MAX, NULL);
	ssize_t count = to ? read(fd, to, FILTER_IGNORE_FILE_MAX) : 0;
	buf_commit(&text, count > 0 ? (size_t)count : 0);
	rules_add_ignore_file(rules, "", buf_span(&text));
	buf_finish(&text);
	return true;
}

/* Includes the folders on the way to an included path; the rest of their content stays excluded. */
static void open_way(
	struct rules *rules, struct rules *closers, const struct rules *ignores, const char *path)
{
	char folder[PATH_MAX];
	size_t end = strcspn(path, "*?[\\");
	for (size_t i = 1; i < end && i < sizeof(folder); i++) {
		text_whole(folder, sizeof(folder), "%.*s", (int)i, path);
		if (path[i] == '/' && rules_exclude(ignores, folder, true)) {
			rules_add_path(rules, true, folder, "", true);
			rules_add_path(closers, false, folder, "/*", false);
		}
	}
}

static bool is_wild(const char *pathspec)
{
	return strpbrk(pathspec, "*?[\\") != NULL;
}

/* For a pathspec with wildcards, includes all folders below its part before the first wildcard. */
static void open_below(struct rules *rules, const char *pathspec)
{
	char folder[PATH_MAX];
	size_t end = strcspn(pathspec, "*?[\\");
	while (end > 0 && pathspec[end - 1] != '/') {
		end--;
	}
	if (end == 0) {
		rules_add(rules, true, "*", true);
	} else if (text_whole(folder, sizeof(folder), "%.*s", (int)end - 1, pathspec)) {
		rules_add_path(rules, true, folder, "/**", true);
	}
}

static void add_includes(
	struct rules *rules, const struct rules *ignores, const char *const *include)
{
	struct rules closers;
	rules_init(&closers);
	for (size_t i = 0; include && include[i]; i++) {
		rules_add_pathspec(rules, true, include[i]);
		if (is_wild(include[i])) {
			open_below(rules, include[i]);
		}
	}
	for (size_t i = 0; include && include[i]; i++) {
		open_way(rules, &closers, ignores, include[i]);
	}
	rules_append(rules, &closers);
	rules_finish(&closers);
}

static bool has_wild(const char *const *pathspecs)
{
	for (size_t i = 0; pathspecs && pathspecs[i]; i++) {
		if (is_wild(pathspecs[i])) {
			return true;
		}
	}
	return false;
}

bool filter_read(struct filter *filter, struct store *store, const struct filter_request *request,
	struct error *err)
{
	struct ignore_files files;
	struct rules ignores;
	filter_finish(filter);
	filter_init(filter);
	rules_init(&ignores);
	ignores.closes_folders = has_wild(request->include);
	ignore_files_read(&files, request->mirror);
	filter->print = print_files(&files);
	for (size_t i = 0; i < files.count; i++) {
		rules_add_ignore_file(
			&ignores, files.items[i].folder, buf_span(&files.items[i].text));
	}
	ignore_files_finish(&files);
	bool read_all = add_user_rules(&ignores, store, request, err);
	add_includes(&filter->ignores, &ignores, request->include);
	rules_add(&filter->ignores, true, ".gitignore", false);
	rules_append(&filter->ignores, &ignores);
	rules_finish(&ignores);
	return read_all;
}

/* ---- members ---- */

struct members_walk {
	struct store *store;
	const struct rules *ignores;
	struct rules *rules;
	struct rules closers;
	struct trail trail;
	size_t named;
	bool is_coarse; // too many for rules of their own
};

static bool walk_tree(
	struct members_walk *walk, const git_oid *tree, bool is_closed, struct error *err);

static bool walk_entry(struct members_walk *walk, const struct tree_view_entry *entry,
	bool was_closed, struct error *err)
{
	const char *path = walk->trail.path;
	const git_oid *folder = tree_view_folder(entry);
	bool is_closed =
		was_closed || rules_match(walk->ignores, path, folder != NULL) == RULE_EXCLUDE;
	if (is_closed && !(folder && walk->is_coarse && was_closed)) {
		rules_add_path(walk->rules, true, path, "", folder != NULL);
		walk->named++;
	}
	if (!folder) {
		return true;
	}
	if (is_closed && walk->is_coarse) {
		rules_add_path(walk->rules, true, path, "/**", false);
		return true;
	}
	if (is_closed) {
		rules_add_path(&walk->closers, false, path, "/*", false);
	}
	return walk_tree(walk, folder, is_closed, err);
}

static bool walk_tree(
	struct members_walk *walk, const git_oid *tree, bool is_closed, struct error *err)
{
	struct tree_view view;
	bool walked = tree_view_load(&view, walk->store, tree, &walk->trail, err);
	for (size_t i = 0; walked && i < view.count; i++) {
		size_t mark;
		if (walk->named > FILTER_MEMBERS_MAX && !walk->is_coarse) {
			break;
		}
		walked = trail_push(&walk->trail, view.entries[i].name, &mark, err);
		if (walked) {
			walked = walk_entry(walk, &view.entries[i], is_closed, err);
			trail_pop(&walk->trail, mark);
		}
	}
	tree_view_finish(&view);
	return walked;
}

static bool add_members(struct rules *rules, struct members_walk *walk, const git_oid *const *trees,
	size_t count, struct error *err)
{
	struct rules members;
	bool walked = true;
	rules_init(&members);
	rules_init(&walk->closers);
	walk->rules = &members;
	walk->named = 0;
	for (size_t i = 0; walked && i < count; i++) {
		walked = walk_tree(walk, trees[i], false, err);
	}
	rules_append(rules, &members);
	rules_append(rules, &walk->closers);
	rules_finish(&members);
	rules_finish(&walk->closers);
	return walked;
}

static void add_fixed(struct rules *rules, const struct filter_request *request)
{
	static const char *const never[] = {
		"[.][gG][iI][tT]", "[gG][iI][tT]~1", "*.acp-conflict", ".acp-broker-*.tmp"};
	for (size_t i = 0; request->closed && request->closed[i]; i++) {
		rules_add_path(rules, false, request->closed[i], "", false);
	}
	for (size_t i = 0; i < ARRAY_LENGTH(never); i++) {
		rules_add(rules, false, never[i], false);
	}
	for (size_t i = 0; request->exclude && request->exclude[i]; i++) {
		rules_add_pathspec(rules, false, request->exclude[i]);
	}
}

bool filter_make(struct filter *filter, struct store *store, const struct filter_request *request,
	const git_oid *const *trees, size_t count, struct error *err)
{
	struct members_walk *walk = mem_alloc_zero(sizeof(*walk));
	bool made = false;
	for (int pass = 0; pass < 2; pass++) {
		rules_finish(&filter->all);
		add_fixed(&filter->all, request);
		*walk = (struct members_walk){
			.store = store, .ignores = &filter->ignores, .is_coarse = pass == 1};
		made = add_members(&filter->all, walk, trees, count, err);
		if (!made || walk->named <= FILTER_MEMBERS_MAX) {
			break;
		}
	}
	free(walk);
	rules_copy(&filter->all, &filter->ignores);
	return made;
}

bool filter_write(const struct filter *filter, int folder, const char *name, struct error *err)
{
	struct buf text;
	buf_init(&text, FILTER_BYTES_MAX);
	int fd ATTR_CLEANUP(fd_cleanup) =
		openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool written = fd >= 0 || error_set_errno(err, errno, "writing %s", name);
	written = written && rules_write(&filter->all, &text, err) &&
	          fd_write_all(fd, buf_span(&text), err);
	buf_finish(&text);
	return written;
}
