/* SPDX-License-Identifier: MIT */
#include "sync/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/point.h"
#include "sync/id.h"
#include "sync/snapshot_impl.h"
#include "sync/store_impl.h"
#include "sync/walk.h"

const struct snapshot_limits snapshot_default_limits = {
	.files_warn = 50000,
	.files_max = 150000,
	.bytes_warn = 5ULL << 30,
	.bytes_max = 20ULL << 30,
};

void snapshot_note(struct snapshot *snapshot, const char *format, ...)
{
	size_t used = strlen(snapshot->note);
	char *at = snapshot->note + used;
	size_t room = sizeof(snapshot->note) - used;
	va_list args;
	if (used > 0 && room > 2) {
		memcpy(at, "; ", 3);
		at += 2;
		room -= 2;
	}
	va_start(args, format);
	vsnprintf(at, room, format, args);
	va_end(args);
}

/* ---- content ---- */

enum { READ_TRIES = 3, TREE_MAX = 64 << 20 };

/* A change this short before the scan may be followed by one with the same time. */
static const int64_t racy_ns = 2LL * 1000000000;

struct content {
	struct walk *walk;
	struct store *store;
	int64_t scan_start_ns;
	size_t read_files;
};

enum outcome { OUTCOME_DONE, OUTCOME_GONE, OUTCOME_UNREADABLE, OUTCOME_FAILED };

static enum outcome outcome_of_errno(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR ? OUTCOME_GONE : OUTCOME_UNREADABLE;
}

static enum outcome read_file(
	struct content *content, struct listed *listed, const char *path, struct error *err)
{
	for (int i = 0; i < READ_TRIES; i++) {
		struct stat status;
		struct store_entry entry;
		int fd ATTR_CLEANUP(fd_cleanup) =
			beneath_open(content->walk->root_fd, path, O_RDONLY | O_NONBLOCK);
		if (fd < 0 || fstat(fd, &status) < 0) {
			return outcome_of_errno(errno);
		}
		if (!S_ISREG(status.st_mode)) {
			return OUTCOME_UNREADABLE;
		}
		if (store_put_file(content->store, fd, &status, &entry, err)) {
			listed_set_status(listed, &status);
			listed->mode = entry.mode;
			listed->id = entry.id;
			return OUTCOME_DONE;
		}
		if (err->code != ERROR_UNAVAILABLE) {
			return OUTCOME_FAILED;
		}
	}
	return OUTCOME_UNREADABLE;
}

static enum outcome read_link(
	struct content *content, struct listed *listed, const char *path, struct error *err)
{
	char folder[PATH_MAX], target[PATH_MAX];
	const char *slash = strrchr(path, '/');
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	int fd ATTR_CLEANUP(fd_cleanup) =
		beneath_open(content->walk->root_fd, *folder ? folder : ".", O_PATH | O_DIRECTORY);
	ssize_t length =
		fd < 0 ? -1 : readlinkat(fd, slash ? slash + 1 : path, target, sizeof(target));
	if (length < 0) {
		return outcome_of_errno(errno);
	}
	struct span bytes = {target, (size_t)length};
	return store_put_bytes(content->store, bytes, &listed->id, err) ? OUTCOME_DONE
	                                                                : OUTCOME_FAILED;
}

static bool is_settled(const struct content *content, const struct listed *listed)
{
	int64_t latest = content->scan_start_ns - racy_ns;
	return listed->mtime_ns < latest && listed->ctime_ns < latest;
}

static bool read_one(struct content *content, uint32_t index, struct error *err)
{
	struct listed *listed = &content->walk->listing->items[index];
	char path[PATH_MAX];
	if (!listing_path(content->walk->listing, index, path, sizeof(path))) {
		return true;
	}
	point("snapshot.reading");
	enum outcome outcome = listed->mode == ENTRY_LINK ? read_link(content, listed, path, err)
	                                                  : read_file(content, listed, path, err);
	content->read_files++;
	switch (outcome) {
	case OUTCOME_DONE:
		listed->flags = is_settled(content, listed) ? LISTED_TRUSTED : 0;
		return true;
	case OUTCOME_GONE:
		listed->mode = ENTRY_NONE;
		return true;
	case OUTCOME_UNREADABLE:
		walk_keep_base(content->walk, index, path);
		return true;
	default:
		return error_prefix(err, "%s", path);
	}
}

static bool read_contents(struct content *content, struct error *err)
{
	const struct listing *listing = content->walk->listing;
	for (uint32_t i = 0; i < listing->count; i++) {
		const struct listed *listed = &listing->items[i];
		if (listed->mode == LISTED_FOLDER || (listed->flags & LISTED_KNOWN)) {
			continue;
		}
		if (snapshot_is_cancelled(content->walk->members->request, err) ||
			!read_one(content, i, err)) {
			return false;
		}
	}
	return true;
}

/* ---- trees ---- */

/* An empty folder, and what has gone, stand in no tree. */
static bool is_in_tree(const struct listed *listed)
{
	static const git_oid none;
	return listed->mode != ENTRY_NONE &&
	       (listed->mode != LISTED_FOLDER || !id_equal(&listed->id, &none));
}

/* Whether all children are what the cache has: then it is the cached tree. */
static const struct listed *cached_tree(
	const struct listing *listing, const struct listing *cache, const struct listed *folder)
{
	if (folder->cached == LISTED_NONE) {
		return NULL;
	}
	const struct listed *cached = &cache->items[folder->cached];
	if (cached->children != folder->children || (cached->flags & LISTED_FIXED)) {
		return NULL;
	}
	for (uint32_t i = 0; i < folder->children; i++) {
		const struct listed *now = &listing->items[folder->first + i];
		if (now->cached != cached->first + i) {
			return NULL;
		}
		const struct listed *before = &cache->items[now->cached];
		if (now->mode != before->mode || !id_equal(&now->id, &before->id)) {
			return NULL;
		}
	}
	return cached;
}

static bool format_tree(const struct listing *listing, const struct listed *folder,
	struct buf *tree, struct error *err)
{
	for (uint32_t i = folder->first; i < folder->first + folder->children; i++) {
		const struct listed *item = &listing->items[i];
		struct span id = {(const char *)item->id.id, GIT_OID_RAWSZ};
		struct span name = {listing_name(listing, i), item->name_length + 1U};
		if (is_in_tree(item) &&
			(!buf_append_format(tree, err, "%o ", (unsigned)item->mode) ||
				!buf_append(tree, name, err) || !buf_append(tree, id, err))) {
			return false;
		}
	}
	return true;
}

static bool write_tree(struct store *store, const struct listing *listing, struct listed *folder,
	struct buf *text, struct error *err)
{
	static const git_oid none;
	buf_clear(text);
	if (!format_tree(listing, folder, text, err)) {
		return false;
	}
	if (text->len == 0) {
		folder->id = none;
		return true;
	}
	return object_put(store, GIT_OBJECT_TREE, buf_span(text), &folder->id, err);
}

/* From the last to the first: what is in a folder comes after it. */
static bool write_trees(struct store *store, struct listing *listing, const struct listing *cache,
	struct error *err)
{
	struct buf text;
	bool written = true;
	buf_init(&text, TREE_MAX);
	for (uint32_t i = listing->count; written && i-- > 0;) {
		struct listed *folder = &listing->items[i];
		if (folder->mode != LISTED_FOLDER || (folder->flags & LISTED_FIXED)) {
			continue;
		}
		const struct listed *same = cached_tree(listing, cache, folder);
		if (same) {
			folder->id = same->id;
		} else {
			written = write_tree(store, listing, folder, &text, err);
		}
	}
	buf_finish(&text);
	return written;
}

/* ---- all of it ---- */

static bool cache_is_current(const struct listing *listing, const struct listing *cache)
{
	if (listing->count != cache->count) {
		return false;
	}
	for (uint32_t i = 0; i < listing->count; i++) {
		const struct listed *now = &listing->items[i];
		bool is_trusted = now->flags & LISTED_TRUSTED;
		if (now->cached != i || now->mode != cache->items[i].mode ||
			!id_equal(&now->id, &cache->items[i].id) ||
			(now->mode != LISTED_FOLDER &&
				is_trusted != (cache->items[i].flags & LISTED_TRUSTED))) {
			return false;
		}
	}
	return true;
}

static void tell(
	const struct walk *walk, const struct snapshot_limits *limits, struct snapshot *snapshot)
{
	members_note(walk->members, snapshot);
	if (walk->unreadable > 0) {
		snapshot_note(snapshot,
			"%zu could not be read and stayed as they were, \"%s\" first",
			walk->unreadable, walk->unreadable_path);
	}
	if (limits->files_warn && walk->files > limits->files_warn) {
		snapshot_note(snapshot, "%zu files are many: consider excluding some", walk->files);
	}
	if (limits->bytes_warn && walk->bytes > limits->bytes_warn) {
		snapshot_note(snapshot, "%llu MiB are much: consider excluding some files",
			(unsigned long long)(walk->bytes >> 20));
	}
}

static bool finish_snapshot(struct content *content, struct snapshot *out, struct error *err)
{
	static const git_oid none;
	struct walk *walk = content->walk;
	struct listing *listing = walk->listing;
	const struct snapshot_request *request = walk->members->request;
	if (!read_contents(content, err) ||
		!write_trees(content->store, listing, &walk->cache->listing, err)) {
		return false;
	}
	point("snapshot.trees");
	if (id_equal(&listing->items[0].id, &none)) {
		listing->items[0].id = store_empty_tree;
	}
	if (request->cache && !cache_is_current(listing, &walk->cache->listing) &&
		!stat_cache_write(content->store, request->cache, listing, err)) {
		return false;
	}
	*out = (struct snapshot){
		.tree = listing->items[0].id,
		.files = walk->files,
		.bytes = walk->bytes,
		.read_files = content->read_files,
	};
	point("snapshot.taken");
	tell(walk, &request->limits, out);
	return true;
}

static bool take(struct store *store, const struct snapshot_request *request, int root_fd,
	struct snapshot *out, struct error *err)
{
	struct timespec now;
	struct members members;
	struct stat_cache cache;
	struct listing listing;
	if (!members_init(&members, store, request, err)) {
		return false;
	}
	point("snapshot.begun");
	clock_gettime(CLOCK_REALTIME, &now);
	stat_cache_open(&cache, store, request->cache);
	listing_init(&listing);
	struct walk walk = {
		.members = &members, .cache = &cache, .listing = &listing, .root_fd = root_fd};
	struct content content = {.walk = &walk,
		.store = store,
		.scan_start_ns =
			((int64_t)now.tv_sec + request->clock_offset_s) * 1000000000 + now.tv_nsec};
	bool taken = walk_run(&walk, err) && finish_snapshot(&content, out, err);
	listing_finish(&listing);
	stat_cache_close(&cache);
	members_finish(&members);
	malloc_trim(0); // a listing and an index of many files: some 40 MiB
	return taken;
}

bool snapshot_take(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err)
{
	char root[PATH_MAX];
	struct snapshot_request resolved = *request;
	if (!snapshot_root_check(request->root, request->home, err)) {
		return false;
	}
	if (!realpath(request->root, root)) {
		return error_set_errno(err, errno, "the workspace %s", request->root);
	}
	resolved.root = root;
	int root_fd ATTR_CLEANUP(fd_cleanup) = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0) {
		return error_set_errno(err, errno, "the workspace %s", root);
	}
	return take(store, &resolved, root_fd, out, err) ||
	       error_prefix(err, "snapshot of %s", root);
}
