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

/* ---- where it goes ---- */

static bool is_empty_folder(const char *path)
{
	DIR *folder = opendir(path);
	size_t count = 0;
	while (folder && readdir(folder)) {
		count++; // "." and ".." among them
	}
	if (folder) {
		closedir(folder);
	}
	return folder && count <= 2;
}

/* DIR may be missing, the folder that it is in may not. */
static bool find_target(struct sessions_into *into, const char *dir, struct error *err)
{
	char real[PATH_MAX];
	if (realpath(dir, real)) {
		into->to = mem_strdup(real);
		return is_empty_folder(real) ||
		       error_set(err, ERROR_CONFIG,
			       "--into %s: expected an empty folder, or one to be made", dir);
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

/* How much of the place is there: the rest is made, and removed again. */
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
			"--into is for a workspace that is gone, and %s is there: leave it out",
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
				  "--into %s: expected a folder on the file system where %s was, "
				  "from where it is moved",
				  into->to, into->place);
}

/* ---- the workspace as it was ---- */

/* It is another folder than at the last sync, on purpose. */
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
		return err->code == ERROR_NOT_FOUND; // it was never synced: all of it is new
	}
	into->is_restored = true;
	into->restored = request.to;
	return apply_run(store, &request, &result, err) &&
	       (result.left == 0 ||
		       error_set(err, ERROR_UNAVAILABLE, "%s: %zu files cannot be written",
			       into->place, result.left));
}

/* *out_fd is the lock, or -1 where there is no store. */
static bool open_locked(
	const struct sessions_into *into, struct store *store, int *out_fd, struct error *err)
{
	bool ok = store_lock_find(into->store, out_fd, err);
	if (ok && *out_fd >= 0) {
		ok = (store_lock_try(*out_fd) ||
			     error_set(err, ERROR_UNAVAILABLE, "another acp-broker syncs %s",
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

/* Takes out what was restored, and nothing else: what came to it since stays. */
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

/* The folders on the way may be there by now; what is in the place itself is nobody else's. */
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

/* The folders on the way that were made for it. */
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
		log_warning("%s: another folder is in the place of the one that was made for "
			    "--into: it stays as it is",
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
			"%s stays, with what has come into it: %s. acp-broker sessions collect "
			"without --into goes on with it",
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
		return error_set(err, ERROR_CONFIG, "nothing of it ever was in a sandbox");
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
			"%s is another folder than the one that all of it came into: nothing is "
			"moved to %s",
			into->place, into->to);
	} else if (rename(into->place, into->to) < 0) {
		ok = error_set_errno(
			err, errno, "moving %s, where all of it is, to %s", into->place, into->to);
	} else {
		remove_made(into);
	}
	into_finish(into);
	return ok;
}
