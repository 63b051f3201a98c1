/* SPDX-License-Identifier: MIT */
#include "sync/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/apply_journal.h"
#include "sync/id.h"
#include "sync/slot.h"
#include "sync/tree_view.h"

enum { FROM, TO, SIDE_COUNT };

struct applier {
	struct store *store;
	const struct apply_request *request;
	struct apply_result *result;
	struct journal journal;
	struct trail trail;
	int root;
	bool is_untidy;             // a temporary file was left behind
	int folder;                 // the current one; -1: none is open
	char folder_path[PATH_MAX]; // its path
};

static bool apply_folder(
	struct applier *applier, const git_oid *from, const git_oid *to, struct error *err);

bool apply_is_temporary(struct span name)
{
	return slot_is_temporary(name);
}

static void report_left(struct applier *applier, const char *path, const char *why)
{
	applier->result->left++;
	if (applier->request->on_left) {
		applier->request->on_left(applier->request->data, path, why);
	}
}

/* ---- the current folder ---- */

/* Syncs the folder's names to the disk before leaving it. */
static bool folder_leave(struct applier *applier, struct error *err)
{
	bool synced = applier->folder < 0 || applier->request->is_cache ||
	              (!point("apply.syncing") && fsync(applier->folder) == 0) || errno == EINVAL;
	if (!synced) {
		error_set_errno(err, errno, "syncing the folder \"%s\"", applier->folder_path);
	}
	fd_close(&applier->folder);
	return synced;
}

static const char why_no_folder[] = "its folder is gone, or something else is in its place";

/* Why a folder cannot be opened; NULL if the error concerns all paths. */
static const char *blocked_why(int errnum)
{
	if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == EXDEV) {
		return why_no_folder;
	}
	struct slot nowhere = {.path = ""};
	return slot_give_up(&nowhere, errnum, "", NULL) == SLOT_LEFT ? nowhere.why : NULL;
}

/*
 * Opens the folder of the first `len` bytes of the trail. If it must stay unchanged, sets *out_why.
 */
static bool folder_enter(
	struct applier *applier, size_t len, bool make, const char **out_why, struct error *err)
{
	char path[PATH_MAX];
	memcpy(path, applier->trail.path, len);
	path[len] = '\0';
	*out_why = NULL;
	if (applier->folder >= 0 && strcmp(path, applier->folder_path) == 0) {
		return true;
	}
	if (!folder_leave(applier, err) || !journal_note(&applier->journal, path, err)) {
		return false;
	}
	point("apply.noted");
	applier->folder = beneath_open_folder(applier->root, path, make);
	if (applier->folder < 0) {
		int errnum = errno;
		*out_why = blocked_why(errnum);
		return *out_why || error_set_errno(err, errnum, "opening the folder \"%s\"", path);
	}
	memcpy(applier->folder_path, path, len + 1);
	return true;
}

/* ---- one file ---- */

static bool finish_slot(struct applier *applier, const struct slot *slot, enum slot_outcome outcome,
	bool is_deletion)
{
	applier->is_untidy = applier->is_untidy || slot->is_untidy;
	if (outcome == SLOT_LEFT) {
		report_left(applier, slot->path, slot->why);
	} else if (outcome == SLOT_DONE && is_deletion) {
		applier->result->deleted++;
	} else if (outcome == SLOT_DONE) {
		applier->result->written++;
	}
	return outcome != SLOT_FAILED;
}

/* The trail is at the file; `mark` is the length of its folder's path. */
static bool apply_leaf(struct applier *applier, size_t mark, const struct store_entry *from,
	const struct store_entry *to, struct error *err)
{
	const atomic_bool *is_cancelled = applier->request->is_cancelled;
	if (is_cancelled && *is_cancelled) {
		return error_set(err, ERROR_UNAVAILABLE,
			"applying to %s: cancelled before \"%s\"; run it again to finish it",
			applier->request->root, applier->trail.path);
	}
	const char *why;
	bool is_deletion = to->mode == ENTRY_NONE;
	if (!folder_enter(applier, mark, !is_deletion, &why, err)) {
		return false;
	}
	struct slot slot = {.store = applier->store,
		.folder = applier->folder,
		.name = applier->trail.path + (mark ? mark + 1 : 0),
		.path = applier->trail.path,
		.is_cache = applier->request->is_cache,
		.why = why};
	enum slot_outcome outcome = SLOT_LEFT;
	if (is_deletion && why == why_no_folder) {
		outcome = SLOT_ALREADY; // there is no such path
	} else if (!why) {
		outcome = slot_set(&slot, from, to, err);
	}
	return finish_slot(applier, &slot, outcome, is_deletion);
}

/* ---- one name ---- */

/* Removes a folder that became empty; files that do not sync may be left in it. */
static bool remove_folder(struct applier *applier, size_t mark, struct error *err)
{
	const char *why;
	if (!folder_enter(applier, mark, false, &why, err)) {
		return false;
	}
	const char *name = applier->trail.path + (mark ? mark + 1 : 0);
	point("apply.emptied");
	if (why || unlinkat(applier->folder, name, AT_REMOVEDIR) == 0) {
		return true; // if the folder cannot be opened, nothing was removed from it
	}
	struct slot slot = {.path = applier->trail.path};
	static const int fine[] = {ENOENT, ENOTEMPTY, EEXIST, ENOTDIR, EBUSY, EINVAL};
	for (size_t i = 0; i < ARRAY_LENGTH(fine); i++) {
		if (errno == fine[i]) {
			return true;
		}
	}
	return finish_slot(
		applier, &slot, slot_give_up(&slot, errno, "removing the folder", err), true);
}

/*
 * Removals come before everything else in a folder, because of changed types and other spellings of
 * a name.
 */
static bool remove_row(
	struct applier *applier, const struct tree_view_row *row, size_t mark, struct error *err)
{
	struct store_entry from = tree_view_leaf(row->sides[FROM]);
	struct store_entry nothing = {.mode = ENTRY_NONE};
	const git_oid *folder = tree_view_folder(row->sides[FROM]);
	if (from.mode && !tree_view_leaf(row->sides[TO]).mode) {
		return apply_leaf(applier, mark, &from, &nothing, err);
	}
	if (folder && !tree_view_folder(row->sides[TO])) {
		return apply_folder(applier, folder, NULL, err) &&
		       remove_folder(applier, mark, err);
	}
	return true;
}

static bool write_row(
	struct applier *applier, const struct tree_view_row *row, size_t mark, struct error *err)
{
	struct store_entry from = tree_view_leaf(row->sides[FROM]);
	struct store_entry to = tree_view_leaf(row->sides[TO]);
	const git_oid *folder = tree_view_folder(row->sides[TO]);
	if (to.mode) {
		return apply_leaf(applier, mark, &from, &to, err);
	}
	return !folder || apply_folder(applier, tree_view_folder(row->sides[FROM]), folder, err);
}

/* ---- one folder ---- */

typedef bool row_step(
	struct applier *applier, const struct tree_view_row *row, size_t mark, struct error *err);

static bool apply_rows(struct applier *applier, const struct tree_view views[SIDE_COUNT],
	row_step *step, struct error *err)
{
	struct tree_view_walk walk = {.views = views, .count = SIDE_COUNT};
	struct tree_view_row row;
	bool applied = true;
	while (applied && tree_view_next(&walk, &row)) {
		const struct tree_view_entry *from = row.sides[FROM];
		const struct tree_view_entry *to = row.sides[TO];
		if (from && to && from->mode == to->mode && id_equal(&from->id, &to->id)) {
			continue;
		}
		size_t mark;
		applied = trail_push(&applier->trail, row.name, &mark, err);
		if (applied) {
			applied = step(applier, &row, mark, err);
			trail_pop(&applier->trail, mark);
		}
	}
	return applied;
}

static bool apply_folder(
	struct applier *applier, const git_oid *from, const git_oid *to, struct error *err)
{
	if (from && to && id_equal(from, to)) {
		return true;
	}
	struct tree_view views[SIDE_COUNT] = {{0}};
	bool applied = tree_view_load(&views[FROM], applier->store, from, &applier->trail, err) &&
	               tree_view_load(&views[TO], applier->store, to, &applier->trail, err) &&
	               apply_rows(applier, views, remove_row, err) &&
	               apply_rows(applier, views, write_row, err);
	tree_view_finish(&views[FROM]);
	tree_view_finish(&views[TO]);
	return applied;
}

/* ---- all ---- */

struct sweep {
	struct applier *applier;
	const char *folder;
	bool has_remains;
};

enum { SWEPT_PATH_MAX = PATH_MAX + NAME_MAX + 2 };

static const char *swept_path(
	const struct sweep *sweep, const char *name, char path[SWEPT_PATH_MAX])
{
	const char *slash = *sweep->folder && *name ? "/" : "";
	text_whole(path, SWEPT_PATH_MAX, "%s%s%s", sweep->folder, slash, name);
	return *path ? path : ".";
}

static void report_kept(void *data, const char *name)
{
	struct sweep *sweep = data;
	char path[SWEPT_PATH_MAX];
	report_left(sweep->applier, swept_path(sweep, name, path),
		"it was saved when a sync was killed, and is kept");
}

static void report_remains(void *data, const char *name, const char *why)
{
	struct sweep *sweep = data;
	const struct apply_request *request = sweep->applier->request;
	char path[SWEPT_PATH_MAX];
	sweep->has_remains = true;
	if (request->on_remains) {
		request->on_remains(request->data, swept_path(sweep, name, path), why);
	}
}

/* A folder that is gone by now has no remains; one that cannot be opened may be opened later. */
static bool sweep_folder(void *data, const char *folder, bool *out_keep, struct error *err)
{
	struct sweep sweep = {.applier = data, .folder = folder};
	struct slot_sweeper sweeper = {report_kept, report_remains, &sweep};
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open_folder(sweep.applier->root, folder, false);
	if (fd < 0) {
		const char *why = blocked_why(errno);
		if (why && why != why_no_folder) {
			report_remains(&sweep, "", why);
		}
	} else if (!slot_sweep(sweep.applier->store, fd, &sweeper, err)) {
		return false;
	}
	*out_keep = sweep.has_remains;
	sweep.applier->is_untidy = sweep.applier->is_untidy || sweep.has_remains;
	return true;
}

static bool apply_all(struct applier *applier, struct error *err)
{
	const struct apply_request *request = applier->request;
	if (!journal_replay(&applier->journal, sweep_folder, applier, err)) {
		return false;
	}
	point("apply.swept");
	bool applied = apply_folder(applier, &request->from, &request->to, err);
	if (!folder_leave(applier, applied ? err : NULL) || !applied) {
		return false;
	}
	point("apply.done");
	if (!applier->is_untidy) {
		journal_forget(&applier->journal);
	}
	return true;
}

bool apply_run(struct store *store, const struct apply_request *request, struct apply_result *out,
	struct error *err)
{
	*out = (struct apply_result){0};
	int root = open(request->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0) {
		return error_set_errno(err, errno, "opening %s", request->root);
	}
	struct applier *applier = mem_alloc_zero(sizeof(*applier));
	applier->store = store;
	applier->request = request;
	applier->result = out;
	applier->root = root;
	applier->folder = -1;
	journal_init(&applier->journal, store, request->root);
	bool applied = apply_all(applier, err);
	journal_finish(&applier->journal);
	fd_close(&applier->root);
	free(applier);
	return applied;
}
