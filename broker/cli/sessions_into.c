/* SPDX-License-Identifier: MIT */
#include "broker/cli/sessions_into.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/text.h"
#include "broker/ledger/state_folder.h"
#include "sync/apply.h"
#include "sync/root_note.h"
#include "sync/store_lock.h"

static void into_finish(struct sessions_into *into)
{
	free(into->place);
	free(into->to);
	free(into->store);
	*into = (struct sessions_into){0};
}

/* ---- the target ---- */

static bool is_empty_folder(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;
	while (folder && readdir(folder)) {
		count++; // including "." and ".."
	}
	if (folder) {
		closedir(folder);
	}
	return folder && count <= 2;
}

/* DIR may be missing, but its parent folder must exist. */
static bool find_target(struct sessions_into *into, const char *dir, struct error *err)
{
	char real[PATH_MAX];
	if (realpath(dir, real)) {
		into->to = mem_strdup(real);
		return is_empty_folder(real) ||
		       error_set(err, ERROR_CONFIG,
			       "--into %s: expected an empty folder, or a path that does not exist",
			       dir);
	}
	char *parent = mem_strdup(dir);
	size_t length = strlen(parent);
	while (length > 1 && parent[length - 1] == '/') {
		parent[--length] = '\0';
	}
	char *slash = strrchr(parent, '/');
	char *name = mem_strdup(slash ? slash + 1 : parent);
	if (slash) {
		slash[slash == parent] = '\0';
	}
	bool found = realpath(slash ? parent : ".", real) != NULL;
	int errnum = errno;
	into->to = found ? path_join(real, name) : NULL;
	free(name);
	free(parent);
	return found || error_set_errno(err, errnum, "--into %s", dir);
}

/* Finds how much of the place exists: the rest is created, and removed again. */
static bool find_place(struct sessions_into *into, struct error *err)
{
	struct stat present, target;
	char *path = mem_strdup(into->place);
	size_t length = strlen(path);
	while (length > 1 && lstat(path, &present) < 0) {
		char *slash = strrchr(path, '/');
		length = slash > path ? (size_t)(slash - path) : 1;
		path[length] = '\0';
	}
	into->present = length;
	bool is_there = strcmp(path, into->place) == 0;
	free(path);
	if (is_there) {
		return error_set(err, ERROR_CONFIG,
			"--into is for a workspace that is gone, but %s is there: leave --into out",
			into->place);
	}
	char *parent = mem_strdup(into->to);
	if (lstat(into->to, &target) < 0) {
		char *slash = strrchr(parent, '/');
		slash[slash == parent] = '\0';
	}
	bool is_same = stat(parent, &target) == 0 && target.st_dev == present.st_dev;
	free(parent);
	return is_same || error_set(err, ERROR_CONFIG,
				  "--into %s: expected a folder on the file system of %s, "
				  "because the workspace is moved from there",
				  into->to, into->place);
}

/* ---- restoring the workspace ---- */

/*
 * Tells the store that the workspace is now this folder, so that the sync does not refuse it as
 * another one.
 */
static bool note_root(
	struct store *store, const char *place, const char *sandbox, struct error *err)
{
	struct root_note note;
	return root_note_take(&note, place, err) && root_note_keep(store, sandbox, &note, err);
}

static bool restore(
	struct sessions_into *into, struct store *store, const char *sandbox, struct error *err)
{
	struct apply_request request = {.root = into->place, .from = store_empty_tree};
	struct apply_result result;
	char name[STATE_FOLDER_NAME_SIZE + 8];
	text_whole(name, sizeof(name), "bases/%s", sandbox);
	if (!store_find(store, name, &request.to, err)) {
		return err->code == ERROR_NOT_FOUND; // never synced: everything is new
	}
	into->is_restored = true;
	into->restored = request.to;
	return apply_run(store, &request, &result, err) &&
	       (result.left == 0 ||
		       error_set(err, ERROR_UNAVAILABLE, "%s: %zu files cannot be written",
			       into->place, result.left));
}

/* *out_fd is the lock, or -1 if there is no store. */
static bool open_locked(
	const struct sessions_into *into, struct store *store, int *out_fd, struct error *err)
{
	bool ok = store_lock_find(into->store, out_fd, err);
	if (ok && *out_fd >= 0) {
		ok = (store_lock_try(*out_fd) ||
			     error_set(err, ERROR_UNAVAILABLE, "another acp-broker is syncing %s",
				     into->place)) &&
		     store_open(store, into->store, 0, err);
	}
	if (!ok) {
		fd_close(out_fd);
	}
	return ok;
}

static bool restore_locked(
	struct sessions_into *into, const struct record *record, struct error *err)
{
	struct store store;
	char sandbox[STATE_FOLDER_NAME_SIZE];
	state_folder_sandbox(
		sandbox, record->backend, record->profile, record->runtime_root, record->instance);
	int fd = -1;
	bool ok = open_locked(into, &store, &fd, err);
	if (fd >= 0) {
		ok = restore(into, &store, sandbox, err) &&
		     note_root(&store, into->place, sandbox, err);
		store_close(&store);
	}
	fd_close(&fd);
	return ok;
}

/* Removes exactly what was restored; later files stay. */
static bool take_out(const struct sessions_into *into, struct error *err)
{
	struct apply_request request = {
		.root = into->place, .from = into->restored, .to = store_empty_tree};
	struct apply_result result;
	struct store store;
	int fd = -1;
	bool ok = !into->is_restored || open_locked(into, &store, &fd, err);
	if (fd >= 0) {
		ok = apply_run(&store, &request, &result, err);
		store_close(&store);
	}
	fd_close(&fd);
	return ok;
}

/* ---- the place ---- */

/* The parent folders may exist by now; the place itself must be ours alone. */
static bool make_place(struct sessions_into *into, struct error *err)
{
	struct stat status;
	char *parent = mem_strdup(into->place);
	*strrchr(parent, '/') = '\0';
	bool ok = !*parent || folder_make(parent, err);
	free(parent);
	if (!ok) {
		return false;
	}
	if (mkdir(into->place, 0700) < 0 || lstat(into->place, &status) < 0) {
		return error_set_errno(err, errno, "making %s", into->place);
	}
	into->is_made = true;
	into->device = status.st_dev;
	into->inode = status.st_ino;
	return true;
}

static bool is_ours(const struct sessions_into *into)
{
	struct stat status;
	return into->is_made && lstat(into->place, &status) == 0 && S_ISDIR(status.st_mode) &&
	       status.st_dev == into->device && status.st_ino == into->inode;
}

/* Removes the parent folders that were created. */
static void remove_made(const struct sessions_into *into)
{
	char *path = mem_strdup(into->place);
	for (char *slash = strrchr(path, '/'); slash && (size_t)(slash - path) > into->present;
		slash = strrchr(path, '/')) {
		*slash = '\0';
		if (rmdir(path) < 0) {
			break;
		}
	}
	free(path);
}

static void undo(const struct sessions_into *into)
{
	struct error why;
	if (into->is_made && !is_ours(into)) {
		log_warning("%s: another folder has replaced the one that was made for "
			    "--into; it is not changed",
			into->place);
		return;
	}
	bool is_empty = !into->is_made || take_out(into, &why);
	if (is_empty && into->is_made && rmdir(into->place) < 0) {
		is_empty = error_set_errno(&why, errno, "removing it");
	}
	if (is_empty) {
		remove_made(into);
	} else {
		log_failure(LOG_LEVEL_WARNING, &why,
			"%s and the files in it stay: %s. acp-broker sessions collect "
			"without --into continues with them",
			into->place, why.text);
	}
}

bool sessions_into_begin(struct sessions_into *into, const char *state_folder,
	const struct record *record, const char *dir, struct error *err)
{
	*into = (struct sessions_into){.place = mem_strdup(record->local_root),
		.store = state_folder_store(state_folder, record->local_root)};
	if (!record->runtime_root) {
		into_finish(into);
		return error_set(err, ERROR_CONFIG, "its workspace never was in a sandbox");
	}
	if (!find_target(into, dir, err) || !find_place(into, err)) {
		into_finish(into);
		return false;
	}
	if (make_place(into, err) && restore_locked(into, record, err)) {
		return true;
	}
	struct error ignored;
	(void)!sessions_into_end(into, false, &ignored);
	return false;
}

bool sessions_into_end(struct sessions_into *into, bool is_collected, struct error *err)
{
	bool ok = true;
	if (!is_collected) {
		undo(into);
	} else if (!is_ours(into)) {
		ok = error_set(err, ERROR_UNAVAILABLE,
			"%s is no longer the folder into which everything was collected: nothing "
			"is moved to %s",
			into->place, into->to);
	} else if (rename(into->place, into->to) < 0) {
		ok = error_set_errno(err, errno, "moving %s, which has everything, to %s",
			into->place, into->to);
	} else {
		remove_made(into);
	}
	into_finish(into);
	return ok;
}
