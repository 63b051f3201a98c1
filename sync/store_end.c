/* SPDX-License-Identifier: MIT */
#include "sync/store_end.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/rsync/mirror_walk.h"
#include "sync/store_impl.h"

static const char root_name[] = "workspace"; // in the store
static const char removed_name[] = ".removed-";

/* ---- its workspace ---- */

void store_note_root(struct store *store, const char *root)
{
	char known[PATH_MAX];
	struct temp temp;
	struct error ignored;
	if (store_read_root(store->path, known) && strcmp(known, root) == 0) {
		return;
	}
	if (temp_create(store, &temp, &ignored)) {
		bool ok = fd_write_all(temp.fd, span_of(root), &ignored) &&
		          temp_rename(store, &temp, root_name, &ignored);
		if (!ok) {
			temp_discard(store, &temp);
		}
	}
}

bool store_read_root(const char *folder, char root[PATH_MAX])
{
	char *path = path_join(folder, root_name);
	ATTR_CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	free(path);
	ssize_t count = fd < 0 ? -1 : read(fd, root, PATH_MAX - 1);
	root[count > 0 ? count : 0] = '\0';
	return root[0] == '/';
}

time_t store_used(const char *folder)
{
	static const char *const names[] = {"tmp", "cache", "refs/acp-broker", "HEAD"};
	time_t used = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		struct stat status;
		char *path = path_join(folder, names[i]);
		if (lstat(path, &status) == 0 && status.st_mtime > used) {
			used = status.st_mtime;
		}
		free(path);
	}
	return used;
}

/* ---- what is still needed ---- */

/* Whether a folder has an entry with this prefix, apart from the names in `but`. */
static bool has_others(const char *folder, const char *prefix, const char *const *but)
{
	DIR *open_folder = opendir(folder);
	bool found = !open_folder && errno != ENOENT;
	struct dirent *entry;
	while (open_folder && !found && (entry = readdir(open_folder))) {
		const char *name = entry->d_name;
		found = strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		        strncmp(name, prefix, strlen(prefix)) == 0 && !words_contain(but, name);
	}
	if (open_folder) {
		closedir(open_folder);
	}
	return found;
}

static bool has_any(const char *folder, const char *prefix)
{
	return has_others(folder, prefix, NULL);
}

/* What a mirror has saved of an interrupted sync: FOLDER/rsync/NAME/rescued-… */
static bool has_rescued(const char *folder)
{
	char *rsync = path_join(folder, "rsync");
	DIR *open_folder = opendir(rsync);
	bool found = !open_folder && errno != ENOENT;
	struct dirent *entry;
	while (open_folder && !found && (entry = readdir(open_folder))) {
		if (entry->d_name[0] != '.') {
			char *mirror = path_join(rsync, entry->d_name);
			found = has_any(mirror, "rescued-");
			free(mirror);
		}
	}
	if (open_folder) {
		closedir(open_folder);
	}
	free(rsync);
	return found;
}

static const char *need_of_ref(const char *name)
{
	if (strcmp(name, "checkpoints") == 0 || strcmp(name, "guards") == 0) {
		return NULL;
	}
	if (strcmp(name, "conflicts") == 0) {
		return "it has unresolved conflicts";
	}
	bool is_commits = strcmp(name, "agent") == 0 || strcmp(name, "agent-in") == 0;
	return is_commits ? "it has commits of an agent"
	                  : "a sandbox of the workspace still exists";
}

/* Checks all kinds of refs except those that may go; an unknown kind counts as needed. */
static const char *need_of_refs(const char *folder, const char *const *ended)
{
	char *refs = path_join(folder, "refs/acp-broker");
	const char *need = NULL;
	DIR *open_folder = opendir(refs);
	struct dirent *entry;
	while (open_folder && !need && (entry = readdir(open_folder))) {
		char *kind = path_join(refs, entry->d_name);
		if (entry->d_name[0] != '.' && has_others(kind, "", ended)) {
			need = need_of_ref(entry->d_name);
		}
		free(kind);
	}
	if (open_folder) {
		closedir(open_folder);
	} else {
		need = "it cannot be read";
	}
	free(refs);
	return need;
}

bool store_is_over(const char *folder, const char *const *ended, char out_need[STORE_NEED_MAX])
{
	const char *need = need_of_refs(folder, ended);
	if (!need && (has_any(folder, "apply-") || has_rescued(folder))) {
		need = "a sync was interrupted";
	}
	char *parked = path_join(folder, "parked"); // sync/parked.h
	if (!need && has_any(parked, "")) {
		need = "it has files of conflicts (checkpoint-age)";
	}
	free(parked);
	if (need) {
		text_format(out_need, STORE_NEED_MAX, "%s", need);
	}
	return !need;
}

/* ---- removal ---- */

/* Renames it before the first file is removed, so that nobody opens half of it. */
bool store_remove(const char *folder, struct error *err)
{
	struct stat status;
	char name[PATH_MAX];
	const char *own = strrchr(folder, '/') + 1;
	text_whole(name, sizeof(name), "%.*s%s%s", (int)(own - folder), folder, removed_name, own);
	if (rename(folder, name) < 0) {
		return error_set_errno(err, errno, "removing %s", folder);
	}
	mirror_remove(AT_FDCWD, name);
	return lstat(name, &status) < 0 ||
	       error_set(err, ERROR_SYSTEM, "removing %s: %s is left, and can be removed", folder,
		       name);
}

void store_sweep_removed(const char *stores)
{
	DIR *open_folder = opendir(stores);
	struct dirent *entry;
	while (open_folder && (entry = readdir(open_folder))) {
		if (strncmp(entry->d_name, removed_name, sizeof(removed_name) - 1) == 0) {
			mirror_remove(dirfd(open_folder), entry->d_name);
		}
	}
	if (open_folder) {
		closedir(open_folder);
	}
}
