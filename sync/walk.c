/* SPDX-License-Identifier: MIT */
#include "sync/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"
#include "sync/snapshot_impl.h"
#include "sync/walk_names.h"

/* ---- the base ---- */

void base_lookup(struct store *store, const git_oid *base, const char *path, uint32_t *out_mode,
	git_oid *out_id)
{
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	*out_mode = ENTRY_NONE;
	if (!base || store->git->tree_lookup(&tree, store->repository, base) < 0) {
		return;
	}
	if (store->git->tree_entry_bypath(&entry, tree, path) == 0) {
		*out_mode = store->git->tree_entry_filemode(entry);
		*out_id = *store->git->tree_entry_id(entry);
		store->git->tree_entry_free(entry);
	}
	store->git->tree_free(tree);
}

static void keep_base(struct walk *walk, uint32_t index, const char *path, struct walk_left *reason)
{
	struct listed *listed = &walk->listing->items[index];
	if (reason->count++ == 0) {
		text_format(reason->first, sizeof(reason->first), "%s", path);
	}
	base_lookup(walk->members->store, walk->members->request->base, path, &listed->mode,
		&listed->id);
	listed->cached = LISTED_NONE;
	listed->flags = LISTED_KNOWN | (listed->mode == LISTED_FOLDER ? LISTED_FIXED : 0);
}

void walk_keep_busy(struct walk *walk, uint32_t index, const char *path)
{
	const struct snapshot_request *request = walk->members->request;
	keep_base(walk, index, path, &walk->busy);
	if (request->on_busy) {
		request->on_busy(request->data, path);
	}
}

void walk_keep_base(struct walk *walk, uint32_t index, const char *path)
{
	keep_base(walk, index, path, &walk->unreadable);
}

/* ---- a folder ---- */

/* A folder during the walk: what the base and the cache know about it. */
struct scan {
	struct walk *walk;
	uint32_t folder;
	int fd;
	struct names *names;
	git_tree *base;              // NULL: not in the base, or equal to the cached one
	bool base_is_cached;         // in this folder, the cache matches the base
	uint32_t cached, cached_end; // the next of the cache's children, and their end
	struct candidate at;
};

static void begin_cached(struct scan *scan)
{
	const struct listed *folder = &scan->walk->listing->items[scan->folder];
	if (folder->cached == LISTED_NONE) {
		return;
	}
	const struct listed *cached = &scan->walk->cache->listing.items[folder->cached];
	if (cached->flags & LISTED_FIXED) {
		return;
	}
	scan->cached = cached->first;
	scan->cached_end = cached->first + cached->children;
	scan->base_is_cached = (folder->flags & LISTED_BASED) && id_equal(&folder->id, &cached->id);
}

static void begin_base(struct scan *scan)
{
	const struct listed *folder = &scan->walk->listing->items[scan->folder];
	struct store *store = scan->walk->members->store;
	if ((folder->flags & LISTED_BASED) && !scan->base_is_cached &&
		store->git->tree_lookup(&scan->base, store->repository, &folder->id) < 0) {
		scan->base = NULL;
	}
}

/* The cache's child with that name and kind. The names come in order. */
static const struct listed *next_cached(struct scan *scan, const char *name, bool is_folder)
{
	if (scan->cached == LISTED_NONE) {
		return NULL;
	}
	const struct listing *cache = &scan->walk->cache->listing;
	for (; scan->cached < scan->cached_end; scan->cached++) {
		const struct listed *item = &cache->items[scan->cached];
		bool item_is_folder = item->mode == LISTED_FOLDER;
		int order = listing_compare_names(
			listing_name(cache, scan->cached), item_is_folder, name, is_folder);
		if (order >= 0) {
			return order == 0 && item_is_folder == is_folder ? item : NULL;
		}
	}
	return NULL;
}

/* Sets whether the base has the name, and its id if it is a folder there. */
static void look_into_base(
	struct scan *scan, const char *name, const struct listed *cached, git_oid *out_id)
{
	static const git_oid none;
	scan->at.is_in_base = false;
	*out_id = none;
	if (scan->base_is_cached) {
		scan->at.is_in_base = cached && memcmp(&cached->id, &none, sizeof(none)) != 0;
		*out_id = cached ? cached->id : none;
		return;
	}
	const struct git *git = scan->walk->members->store->git;
	const git_tree_entry *entry = scan->base ? git->tree_entry_byname(scan->base, name) : NULL;
	if (entry) {
		scan->at.is_in_base = true;
		*out_id = *git->tree_entry_id(entry);
	}
	if (entry && git->tree_entry_filemode(entry) != GIT_FILEMODE_TREE) {
		*out_id = none;
	}
}

static void note_left(struct walk_left *left, const char *path)
{
	if (left->count++ == 0) {
		text_format(left->first, sizeof(left->first), "%s", path);
	}
}

bool walk_is_forbidden(struct walk *walk, int errnum, const char *path)
{
	bool is_forbidden = walk->owner.is_other && (errnum == EACCES || errnum == EPERM);
	if (is_forbidden) {
		note_left(&walk->forbidden, path);
	}
	return is_forbidden;
}

/* Notes a hard link: at the first change its other name becomes a separate file. */
static void note_linked(struct scan *scan, const struct stat *status)
{
	struct walk *walk = scan->walk;
	git_oid id = {{0}};
	uint64_t key = (uint64_t)status->st_ino ^ ((uint64_t)status->st_dev << 44);
	memcpy(id.id, &key, sizeof(key));
	if (!id_set_add(&walk->inodes, &id)) {
		note_left(&walk->linked, members_path(walk->members, &scan->at));
	}
}

/* How many files are in and below each folder. A folder's children come after it. */
static uint32_t *count_below(const struct listing *listing)
{
	uint32_t *counts = mem_alloc_zero(listing->count * sizeof(*counts));
	for (uint32_t i = listing->count - 1; i > 0; i--) {
		counts[i] += listing->items[i].mode != LISTED_FOLDER;
		counts[listing->items[i].parent] += counts[i];
	}
	return counts;
}

static uint32_t find_largest_in(
	const struct listing *listing, const uint32_t *counts, uint32_t folder)
{
	uint32_t largest = 0;
	for (uint32_t i = folder + 1; i < listing->count; i++) {
		const struct listed *item = &listing->items[i];
		bool is_more = largest == 0 || counts[i] > counts[largest];
		if (item->mode == LISTED_FOLDER && item->parent == folder && is_more) {
			largest = i;
		}
	}
	return largest;
}

/*
 * The largest folder; then, in it, the one that has more than half of its files, and so on. 0:
 * none.
 */
static uint32_t find_largest(const struct listing *listing, const uint32_t *counts)
{
	uint32_t largest = find_largest_in(listing, counts, 0);
	uint32_t below = largest;
	while (below && (below = find_largest_in(listing, counts, largest)) &&
		counts[below] > counts[largest] / 2) {
		largest = below;
	}
	return largest;
}

static bool fail_many(const struct walk *walk, size_t max, struct error *err)
{
	const struct listing *listing = walk->listing;
	uint32_t *counts = count_below(listing);
	uint32_t largest = find_largest(listing, counts);
	uint32_t count = counts[largest];
	char path[PATH_MAX];
	free(counts);
	if (largest == 0 || !listing_path(listing, largest, path, sizeof(path))) {
		return error_set(err, ERROR_LIMIT,
			"more than %zu files: exclude some, or raise max-files", max);
	}
	char *quoted = path_quote(span_of(path));
	error_set(err, ERROR_LIMIT,
		"more than %zu files; most of those seen (%u) are in %s: add \"exclude = %s\" to "
		"the "
		"profile, or raise max-files",
		max, (unsigned)count, quoted, quoted);
	free(quoted);
	return false;
}

static bool count_file(struct walk *walk, const struct stat *status, struct error *err)
{
	const struct snapshot_limits *limits = &walk->members->request->limits;
	walk->files++;
	walk->bytes += S_ISREG(status->st_mode) ? (uint64_t)status->st_size : 0;
	if (limits->files_max && walk->files > limits->files_max) {
		return fail_many(walk, limits->files_max, err);
	}
	if (limits->bytes_max && walk->bytes > limits->bytes_max) {
		return error_set(err, ERROR_LIMIT,
			"more than %llu MiB: exclude some files, or raise max-size",
			(unsigned long long)(limits->bytes_max >> 20));
	}
	return true;
}

static uint32_t mode_of(const struct stat *status)
{
	if (S_ISLNK(status->st_mode)) {
		return ENTRY_LINK;
	}
	return status->st_mode & S_IXUSR ? ENTRY_EXECUTABLE : ENTRY_FILE;
}

/* In a tree a big file has its own mode; its executable bit is in the id. */
static bool same_mode(const struct listed *cached, uint32_t mode)
{
	struct store_entry entry = {cached->mode, cached->id};
	return cached->mode == mode ||
	       (cached->mode == ENTRY_BIG && mode != ENTRY_LINK &&
		       store_entry_is_executable(&entry) == (mode == ENTRY_EXECUTABLE));
}

static bool add_file(
	struct scan *scan, struct span name, const struct listed *cached, struct error *err)
{
	struct walk *walk = scan->walk;
	struct stat status;
	if (!members_has_file(walk->members, &scan->at)) {
		return true;
	}
	if (fstatat(scan->fd, name.data, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT) {
			return true;
		}
		status = (struct stat){.st_mode = S_IFCHR};
	}
	uint32_t index = listing_add(walk->listing, scan->folder, name, mode_of(&status));
	if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
		walk_keep_base(walk, index, members_path(walk->members, &scan->at));
		return true;
	}
	if (S_ISLNK(status.st_mode) && snapshot_name_is_gitmodules(name)) {
		keep_base(walk, index, members_path(walk->members, &scan->at), &walk->refused);
		return true;
	}
	struct listed *listed = &walk->listing->items[index];
	listed_set_status(listed, &status);
	if (S_ISREG(status.st_mode) && status.st_nlink > 1) {
		note_linked(scan, &status);
	}
	if (cached) {
		listed->cached = (uint32_t)(cached - walk->cache->listing.items);
	}
	if (cached && (cached->flags & LISTED_TRUSTED) && listed_matches(cached, &status) &&
		same_mode(cached, listed->mode)) {
		listed->mode = cached->mode;
		listed->id = cached->id;
		listed->flags = LISTED_KNOWN | LISTED_TRUSTED;
	}
	return count_file(walk, &status, err);
}

/* Whether the folder is one of those to read. */
static bool is_asked_for(const struct scan *scan)
{
	const struct members *members = scan->walk->members;
	const struct snapshot_request *request = members->request;
	const char *path = members_path(members, &scan->at);
	return !request->folders || bsearch(&path, request->folders, request->folder_count,
					    sizeof(*request->folders), words_compare);
}

static void add_folder(
	struct scan *scan, struct span name, const struct listed *cached, const git_oid *base_id)
{
	static const git_oid none;
	struct walk *walk = scan->walk;
	bool is_based = memcmp(base_id, &none, sizeof(none)) != 0;
	bool is_left = !is_asked_for(scan);
	if (is_left ? !is_based : !members_has_folder(walk->members, &scan->at)) {
		return;
	}
	uint32_t index = listing_add(walk->listing, scan->folder, name, LISTED_FOLDER);
	struct listed *listed = &walk->listing->items[index];
	listed->id = *base_id;
	if (is_based) {
		listed->flags |= LISTED_BASED;
	}
	if (is_left) {
		listed->flags |= LISTED_KNOWN | LISTED_FIXED;
	}
	if (cached) {
		listed->cached = (uint32_t)(cached - walk->cache->listing.items);
	}
}

static bool add_child(struct scan *scan, const struct name *item, struct error *err)
{
	const char *text = names_text(scan->names, item);
	struct span name = {text, item->length};
	struct candidate *at = &scan->at;
	git_oid base_id;
	if (at->folder_length + name.len + 1 >= sizeof(at->path)) {
		scan->walk->unreadable.count++;
		return true;
	}
	memcpy(at->path + at->folder_length, text, name.len + 1);
	const struct listed *cached = next_cached(scan, text, item->type == DT_DIR);
	look_into_base(scan, text, cached, &base_id);
	if (item->type == DT_DIR) {
		add_folder(scan, name, cached, &base_id);
		return true;
	}
	return add_file(scan, name, cached, err);
}

/* ---- the walk ---- */

static bool scan_children(struct scan *scan, struct error *err)
{
	if (scan->names->has_git) {
		members_add_nested(scan->walk->members, &scan->at);
	}
	if (*scan->names->spelled) {
		struct candidate *at = &scan->at;
		text_whole(at->path + at->folder_length, sizeof(at->path) - at->folder_length, "%s",
			scan->names->spelled);
		note_left(&scan->walk->spelled, members_path(scan->walk->members, at));
	}
	for (size_t i = 0; i < scan->names->count; i++) {
		if (!add_child(scan, &scan->names->items[i], err)) {
			return false;
		}
	}
	return true;
}

/* The path of the folder, with a slash at its end unless it is empty. */
static bool begin_path(struct scan *scan)
{
	struct members *members = scan->walk->members;
	struct candidate *at = &scan->at;
	const char *root = members->request->root;
	const char *from_top = root + strlen(root) - members->prefix + (members->prefix > 0);
	size_t room = sizeof(at->path) - members->prefix - 1;
	text_whole(at->path, sizeof(at->path), "%s/", members->prefix > 0 ? from_top : "");
	if (!listing_path(scan->walk->listing, scan->folder, at->path + members->prefix, room)) {
		return false;
	}
	at->folder_length = members->prefix + strlen(at->path + members->prefix);
	if (scan->folder != 0) {
		at->path[at->folder_length++] = '/';
	}
	at->path[at->folder_length] = '\0';
	at->folder = scan->folder;
	at->listing = scan->walk->listing;
	return true;
}

static bool scan_folder(struct walk *walk, uint32_t folder, struct names *names, struct error *err)
{
	struct scan scan = {.walk = walk, .folder = folder, .names = names, .cached = LISTED_NONE};
	struct error ignored;
	const char *path = members_path(walk->members, &scan.at);
	if (!begin_path(&scan)) {
		walk_keep_base(walk, folder, "");
		return true;
	}
	scan.fd =
		owner_open(&walk->owner, walk->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY);
	if (scan.fd < 0 && errno == ENOENT && folder != 0) {
		return true;
	}
	if (scan.fd < 0 || !names_read(names, scan.fd, &ignored)) {
		int errnum = errno;
		fd_close(&scan.fd);
		if (folder == 0) {
			return error_set_errno(
				err, errnum, "reading %s", walk->members->request->root);
		}
		scan.at.path[scan.at.folder_length - 1] = '\0';
		if (!walk_is_forbidden(walk, errnum, path)) {
			walk_keep_base(walk, folder, path);
		}
		return true;
	}
	begin_cached(&scan);
	begin_base(&scan);
	bool scanned = scan_children(&scan, err);
	walk->members->store->git->tree_free(scan.base);
	fd_close(&scan.fd);
	return scanned;
}

bool snapshot_is_cancelled(const struct snapshot_request *request, struct error *err)
{
	return request->is_cancelled && *request->is_cancelled &&
	       !error_set(err, ERROR_UNAVAILABLE, "cancelled");
}

static void begin_root(struct walk *walk)
{
	struct listed *root = &walk->listing->items[0];
	const struct snapshot_request *request = walk->members->request;
	if (request->base) {
		root->id = *request->base;
		root->flags |= LISTED_BASED;
	}
	root->cached = stat_cache_is_empty(walk->cache) ? LISTED_NONE : 0;
}

bool walk_run(struct walk *walk, struct error *err)
{
	struct names names;
	names_init(&names);
	begin_root(walk);
	bool walked = true;
	/* A folder's children are appended after it, so that each is visited once. */
	for (uint32_t i = 0; walked && i < walk->listing->count; i++) {
		const struct listed *listed = &walk->listing->items[i];
		if (listed->mode == LISTED_FOLDER && !(listed->flags & LISTED_FIXED)) {
			walked = !snapshot_is_cancelled(walk->members->request, err) &&
			         scan_folder(walk, i, &names, err);
		}
	}
	names_finish(&names);
	id_set_finish(&walk->inodes);
	return walked;
}
