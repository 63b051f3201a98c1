/* SPDX-License-Identifier: MIT */
#include "sync/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"
#include "base/point.h"
#include "base/text.h"
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
	va_list args;
	if (snapshot->note[0]) {
		text_append(snapshot->note, sizeof(snapshot->note), "; ");
	}
	va_start(args, format);
	text_vappend(snapshot->note, sizeof(snapshot->note), format, args);
	va_end(args);
}

/* ---- content ---- */

enum { READ_TRIES = 3 };

/* A change so shortly before the scan may be followed by another one with the same time. */
static const int64_t racy_ns = 2LL * 1000000000;

struct content {
	struct walk *walk;
	struct store *store;
	int64_t scan_start_ns;
	size_t read_files;
};

enum outcome { OUTCOME_DONE, OUTCOME_GONE, OUTCOME_UNREADABLE, OUTCOME_BUSY, OUTCOME_FAILED };

static enum outcome outcome_of_errno(struct content *content, int errnum, const char *path)
{
	if (walk_is_forbidden(content->walk, errnum, path)) {
		return OUTCOME_GONE;
	}
	return errnum == ENOENT || errnum == ENOTDIR ? OUTCOME_GONE : OUTCOME_UNREADABLE;
}

/* The entry of this path in the last listing, so that a big file can be stored as a delta of it. */
static struct store_before last_version(const struct content *content, const struct listed *listed)
{
	struct store_before before = {
		.is_cancelled = content->walk->members->request->is_cancelled};
	if (listed->cached != LISTED_NONE) {
		const struct listed *cached = &content->walk->cache->listing.items[listed->cached];
		before.entry = (struct store_entry){cached->mode, cached->id};
	}
	return before;
}

static enum outcome read_file(
	struct content *content, struct listed *listed, const char *path, struct error *err)
{
	struct store_before before = last_version(content, listed);
	bool is_busy = false;
	for (int i = 0; i < READ_TRIES; i++) {
		struct stat status;
		struct store_entry entry;
		struct error why;
		int fd ATTR_CLEANUP(fd_cleanup) = owner_open(
			&content->walk->owner, content->walk->root_fd, path, O_RDONLY | O_NONBLOCK);
		if (fd < 0 || fstat(fd, &status) < 0) {
			return outcome_of_errno(content, errno, path);
		}
		if (!S_ISREG(status.st_mode)) {
			return OUTCOME_UNREADABLE;
		}
		if (store_put_version(content->store, fd, &status, &before, &entry, &why)) {
			listed_set_status(listed, &status);
			listed->mode = entry.mode;
			listed->id = entry.id;
			return OUTCOME_DONE;
		}
		if (why.code != ERROR_UNAVAILABLE) {
			*err = why;
			return OUTCOME_FAILED;
		}
		is_busy = why.reason && strcmp(why.reason, "SYNC_BUSY") == 0;
	}
	return is_busy ? OUTCOME_BUSY : OUTCOME_UNREADABLE;
}

static enum outcome read_link(
	struct content *content, struct listed *listed, const char *path, struct error *err)
{
	char folder[PATH_MAX], target[PATH_MAX];
	const char *slash = strrchr(path, '/');
	text_whole(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	int fd ATTR_CLEANUP(fd_cleanup) = owner_open(&content->walk->owner, content->walk->root_fd,
		*folder ? folder : ".", O_PATH | O_DIRECTORY);
	ssize_t length =
		fd < 0 ? -1 : readlinkat(fd, slash ? slash + 1 : path, target, sizeof(target));
	if (length < 0) {
		return outcome_of_errno(content, errno, path);
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
	case OUTCOME_BUSY:
		walk_keep_busy(content->walk, index, path);
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

/* ---- the whole ---- */

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
	if (walk->unreadable.count > 0) {
		snapshot_note(snapshot,
			"%zu could not be read and stayed as they were, \"%s\" first",
			walk->unreadable.count, walk->unreadable.first);
	}
	if (walk->forbidden.count > 0) {
		snapshot_note(snapshot,
			"%zu that user %u, the owner of the workspace, may not read are left out, "
			"\"%s\" first",
			walk->forbidden.count, (unsigned)walk->owner.uid, walk->forbidden.first);
	}
	snapshot->refused = walk->refused.count;
	memcpy(snapshot->first_refused, walk->refused.first, sizeof(snapshot->first_refused));
	if (walk->refused.count > 0) {
		snapshot_note(snapshot,
			"git refuses every link named .gitmodules, so %zu stayed as they "
			"were, \"%s\" first",
			walk->refused.count, walk->refused.first);
	}
	if (walk->linked.count > 0) {
		snapshot_note(snapshot,
			"%zu hard links, \"%s\" first: each name is a file of its own in the "
			"sandbox",
			walk->linked.count, walk->linked.first);
	}
	if (walk->spelled.count > 0) {
		snapshot_note(snapshot,
			"%zu not synced, \"%s\" first: some file systems take the name for .git",
			walk->spelled.count, walk->spelled.first);
	}
	if (limits->files_warn && walk->files > limits->files_warn) {
		snapshot->excess |= SNAPSHOT_MANY_FILES;
	}
	if (limits->bytes_warn && walk->bytes > limits->bytes_warn) {
		snapshot->excess |= SNAPSHOT_MANY_BYTES;
	}
}

void snapshot_warning(
	const struct snapshot *snapshot, unsigned kinds, char text[SNAPSHOT_WARNING_MAX])
{
	char files[SNAPSHOT_WARNING_MAX / 2] = "";
	char bytes[SNAPSHOT_WARNING_MAX / 2] = "";
	if (kinds & SNAPSHOT_MANY_FILES) {
		snprintf(files, sizeof(files), "%zu files are a lot: consider excluding some",
			snapshot->files);
	}
	if (kinds & SNAPSHOT_MANY_BYTES) {
		snprintf(bytes, sizeof(bytes), "%llu MiB are a lot: consider excluding some files",
			(unsigned long long)(snapshot->bytes >> 20));
	}
	text_format(
		text, SNAPSHOT_WARNING_MAX, "%s%s%s", files, *files && *bytes ? "; " : "", bytes);
}

/* ---- walking ---- */

struct snapshot_view {
	struct snapshot_request request;
	bool is_measured; // read no content
	char root[PATH_MAX];
	int root_fd;
	struct members members;
	bool has_members;
	struct stat_cache cache;
	struct listing listing;
	struct walk walk;
	struct buf nested;        // sync/nested.h
	struct snapshot snapshot; // all except the tree
};

/* A listing and an index of many files take some 40 MiB: each is freed as soon as possible. */
static void let_members_go(struct snapshot_view *view)
{
	if (view->has_members) {
		members_finish(&view->members);
		view->has_members = false;
		libc_trim();
	}
}

static bool look_at_all(struct snapshot_view *view, struct store *store, struct error *err)
{
	struct timespec now;
	view->has_members = members_init(&view->members, store, &view->request, err);
	if (!view->has_members) {
		return false;
	}
	point("snapshot.begun");
	clock_gettime(CLOCK_REALTIME, &now);
	stat_cache_open(&view->cache, store, view->request.cache);
	view->walk = (struct walk){.members = &view->members,
		.cache = &view->cache,
		.listing = &view->listing,
		.root_fd = view->root_fd};
	if (view->request.as_owner) {
		view->walk.owner = owner_of_workspace(view->root);
	}
	struct content content = {.walk = &view->walk,
		.store = store,
		.scan_start_ns = ((int64_t)now.tv_sec + view->request.clock_offset_s) * 1000000000 +
	                         now.tv_nsec};
	if (!walk_run(&view->walk, err) || (!view->is_measured && !read_contents(&content, err))) {
		return false;
	}
	view->snapshot = (struct snapshot){.files = view->walk.files,
		.bytes = view->walk.bytes,
		.read_files = content.read_files};
	tell(&view->walk, &view->request.limits, &view->snapshot);
	return buf_append(&view->nested, buf_span(&view->members.nested_paths), err);
}

static bool open_root(
	struct snapshot_view *view, const struct snapshot_request *request, struct error *err)
{
	view->request = *request;
	if (!snapshot_root_check(request->root, request->home, err)) {
		return false;
	}
	if (!realpath(request->root, view->root)) {
		return error_set_errno(err, errno, "the workspace %s", request->root);
	}
	view->request.root = view->root;
	view->root_fd = open(view->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return view->root_fd >= 0 || error_set_errno(err, errno, "the workspace %s", view->root);
}

static struct snapshot_view *look(struct store *store, const struct snapshot_request *request,
	bool is_measured, struct error *err)
{
	struct snapshot_view *view = mem_alloc_zero(sizeof(*view));
	view->root_fd = -1;
	view->is_measured = is_measured;
	listing_init(&view->listing);
	buf_init(&view->nested, NESTED_MAX);
	bool opened = open_root(view, request, err);
	bool looked = opened && look_at_all(view, store, err);
	if (opened && !looked) {
		error_prefix(err, "snapshot of %s", view->root);
	}
	if (!looked) {
		snapshot_drop(view);
		return NULL;
	}
	let_members_go(view);
	fd_close(&view->root_fd);
	return view;
}

struct snapshot_view *snapshot_begin(
	struct store *store, const struct snapshot_request *request, struct error *err)
{
	return look(store, request, false, err);
}

bool snapshot_measure(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err)
{
	struct snapshot_view *view = look(store, request, true, err);
	if (!view) {
		return false;
	}
	out->files = view->snapshot.files;
	out->bytes = view->snapshot.bytes;
	snapshot_drop(view);
	return true;
}

void snapshot_drop(struct snapshot_view *view)
{
	if (!view) {
		return;
	}
	let_members_go(view);
	listing_finish(&view->listing);
	buf_finish(&view->nested);
	stat_cache_close(&view->cache);
	fd_close(&view->root_fd);
	free(view);
	libc_trim();
}

/* ---- taking ---- */

static bool finish_snapshot(
	struct snapshot_view *view, struct store *store, struct snapshot *out, struct error *err)
{
	static const git_oid none;
	struct listing *listing = &view->listing;
	const char *cache = view->request.cache;
	if (!snapshot_write_trees(store, listing, &view->cache.listing, err)) {
		return false;
	}
	point("snapshot.trees");
	if (id_equal(&listing->items[0].id, &none)) {
		listing->items[0].id = store_empty_tree;
	}
	if (cache && !view->request.folders && !cache_is_current(listing, &view->cache.listing) &&
		!stat_cache_write(store, cache, listing, err)) {
		return false;
	}
	if (cache && !view->request.folders && !view->request.rules_of &&
		!nested_write(store, &view->nested, err)) {
		return false;
	}
	*out = view->snapshot;
	out->tree = listing->items[0].id;
	point("snapshot.taken");
	return true;
}

bool snapshot_finish(
	struct snapshot_view *view, struct store *store, struct snapshot *out, struct error *err)
{
	bool finished = finish_snapshot(view, store, out, err) ||
	                error_prefix(err, "snapshot of %s", view->root);
	snapshot_drop(view);
	return finished;
}

bool snapshot_take(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err)
{
	struct snapshot_view *view = snapshot_begin(store, request, err);
	return view && snapshot_finish(view, store, out, err);
}
