/* SPDX-License-Identifier: MIT */
#include "sync/parked.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/real_path.h"
#include "base/text.h"
#include "sync/id.h"
#include "sync/store_impl.h"

static const char top[] = "parked";

static const char *const folders[PARKED_VERSIONS] = {"base", "local", "runtime", "merged"};

bool parked_is_name(struct span name)
{
	struct span suffix = SPAN_LITERAL(PARKED_SUFFIX);
	return name.len >= suffix.len &&
	       memcmp(name.data + name.len - suffix.len, suffix.data, suffix.len) == 0;
}

/* ---- one file ---- */

/* Relative to the store's folder. */
static char *path_of(const struct parked_place *place, enum parked_version version)
{
	const char *slash = strrchr(place->path, '/');
	const char *name = slash ? slash + 1 : place->path;
	size_t size = sizeof(top) + strlen(place->id) + strlen(folders[version]) + strlen(name) + 4;
	char *path = mem_alloc(size);
	text_whole(path, size, "%s/%s/%s/%s", top, place->id, folders[version], name);
	return path;
}

char *parked_file(const struct parked_place *place, enum parked_version version)
{
	char *path = path_of(place, version);
	char *file = path_join(place->store->path, path);
	free(path);
	return file;
}

static bool is_there(const struct parked_place *place, const char *path)
{
	return faccessat(place->store->folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool write_new(const struct parked_place *place, const char *path,
	const struct store_entry *entry, struct error *err)
{
	struct temp temp = {.fd = -1};
	bool written = folder_make_parents(place->store, path, err) &&
	               temp_create(place->store, &temp, err) &&
	               store_copy_out(place->store, entry, temp.fd, err) &&
	               temp_publish(place->store, &temp, path, err);
	temp_discard(place->store, &temp);
	return written;
}

bool parked_write(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err)
{
	char *path = path_of(place, version);
	bool written = !entry->mode || write_new(place, path, entry, err);
	free(path);
	return written;
}

bool parked_write_once(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry, struct error *err)
{
	char *path = path_of(place, version);
	bool written = is_there(place, path) || parked_write(place, version, entry, err);
	free(path);
	return written;
}

static bool read_file(const struct parked_place *place, const char *path,
	struct store_entry *out_entry, struct error *err)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		place->store->folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status) < 0) {
		return error_set_errno(err, errno, "reading %s/%s", place->store->path, path);
	}
	if (!S_ISREG(status.st_mode)) {
		return error_set(
			err, ERROR_DENIED, "%s/%s is not a file", place->store->path, path);
	}
	status.st_mode &= ~(mode_t)0111;
	return store_put_file(place->store, fd, &status, out_entry, err);
}

bool parked_read(const struct parked_place *place, enum parked_version version,
	struct store_entry *out_entry, struct error *err)
{
	char *path = path_of(place, version);
	bool is_read = read_file(place, path, out_entry, err);
	free(path);
	return is_read;
}

void parked_set_aside(const struct parked_place *place, enum parked_version version)
{
	struct stat status;
	char *path = path_of(place, version);
	if (fstatat(place->store->folder_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0) {
		char aside[PATH_MAX];
		if (text_whole(aside, sizeof(aside), "%s.before-%llx", path,
			    (unsigned long long)status.st_ino)) {
			renameat(place->store->folder_fd, path, place->store->folder_fd, aside);
		}
	}
	free(path);
}

static bool is_content(const struct store_entry *file, const struct store_entry *entry)
{
	return entry->mode == ENTRY_LINK ? id_equal(&file->id, &entry->id)
	                                 : store_entry_same_content(file, entry);
}

/* Also removes the folders of the version and of the conflict when their last file is removed. */
void parked_remove(const struct parked_place *place, enum parked_version version,
	const struct store_entry *entry)
{
	struct error ignored;
	struct store_entry file;
	char *path = path_of(place, version);
	if (read_file(place, path, &file, &ignored) && is_content(&file, entry)) {
		unlinkat(place->store->folder_fd, path, 0);
	}
	for (char *slash = strrchr(path, '/'); slash && slash > path + sizeof(top);
		slash = strrchr(path, '/')) {
		*slash = '\0';
		unlinkat(place->store->folder_fd, path, AT_REMOVEDIR);
	}
	free(path);
}

/* ---- all parked files ---- */

static DIR *open_folder(struct store *store, const char *path)
{
	int fd = openat(store->folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		fd_close(&fd);
	}
	return folder;
}

/* A folder's time is when a file last came into it or left it. */
static bool is_old(struct store *store, const char *path, time_t cutoff)
{
	struct stat status;
	return fstatat(store->folder_fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status.st_mtime < cutoff;
}

static void sweep_one(struct store *store, const char *id, time_t cutoff)
{
	char path[PATH_MAX];
	bool is_all_old = true;
	for (size_t i = 0; i < PARKED_VERSIONS; i++) {
		text_whole(path, sizeof(path), "%s/%s/%s", top, id, folders[i]);
		is_all_old = is_all_old && (faccessat(store->folder_fd, path, F_OK, 0) != 0 ||
						   is_old(store, path, cutoff));
	}
	for (size_t i = 0; is_all_old && i < PARKED_VERSIONS; i++) {
		if (text_whole(path, sizeof(path), "%s/%s/%s", top, id, folders[i])) {
			folder_remove(store, path);
		}
	}
	text_whole(path, sizeof(path), "%s/%s", top, id);
	unlinkat(store->folder_fd, path, AT_REMOVEDIR);
}

static void sweep_batch(
	struct store *store, const struct parked_sweeping *sweeping, const char *batch)
{
	char path[PATH_MAX];
	char id[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", top, batch);
	DIR *folder = open_folder(store, path);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		int len = snprintf(id, sizeof(id), "%s/%s", batch, entry->d_name);
		bool is_whole = len > 0 && (size_t)len < sizeof(id);
		if (*entry->d_name != '.' && is_whole && !sweeping->is_open(sweeping->data, id)) {
			sweep_one(store, id, sweeping->cutoff);
		}
	}
	if (folder) {
		closedir(folder);
	}
	unlinkat(store->folder_fd, path, AT_REMOVEDIR);
}

void parked_sweep(struct store *store, const struct parked_sweeping *sweeping)
{
	DIR *folder = open_folder(store, top);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		if (*entry->d_name != '.') {
			sweep_batch(store, sweeping, entry->d_name);
		}
	}
	if (folder) {
		closedir(folder);
	}
}
