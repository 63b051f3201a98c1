/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/store_impl.h"

/* ---- directories ---- */

static bool make_folder(int at, const char *path, struct error *err)
{
	if (mkdirat(at, path, 0700) < 0 && errno != EEXIST) {
		return error_set_errno(err, errno, "making the directory %s", path);
	}
	return true;
}

/* Creates each directory above the last component, but not the last one. */
static bool make_parents(int at, const char *path, struct error *err)
{
	char part[PATH_MAX];
	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		size_t length = (size_t)(slash - path);
		if (length >= sizeof(part)) {
			return error_set_errno(err, ENAMETOOLONG, "%s", path);
		}
		memcpy(part, path, length);
		part[length] = '\0';
		if (!make_folder(at, part, err)) {
			return false;
		}
	}
	return true;
}

bool folder_make_parents(struct store *store, const char *path, struct error *err)
{
	return make_parents(store->folder_fd, path, err);
}

/* ---- files that appear as a whole ---- */

bool temp_create(struct store *store, struct temp *temp, struct error *err)
{
	uint64_t random = 0;
	for (int tries = 0; tries < 16; tries++) {
		if (getrandom(&random, sizeof(random), 0) < 0) {
			return error_set_errno(err, errno, "store %s", store->path);
		}
		snprintf(temp->name, sizeof(temp->name), "tmp/%016llx", (unsigned long long)random);
		int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
		temp->fd = openat(store->folder_fd, temp->name, flags, 0600);
		if (temp->fd >= 0) {
			return true;
		}
		if (errno != EEXIST) {
			break;
		}
	}
	return error_set_errno(err, errno, "making %s in the store %s", temp->name, store->path);
}

void temp_discard(struct store *store, struct temp *temp)
{
	if (temp->fd >= 0) {
		fd_close(&temp->fd);
		unlinkat(store->folder_fd, temp->name, 0);
	}
}

static bool sync_folder_of(struct store *store, const char *path, struct error *err)
{
	char folder[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	if (slash) {
		text_whole(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
	}
	int fd ATTR_CLEANUP(fd_cleanup) =
		openat(store->folder_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0) {
		return error_set_errno(err, errno, "store %s: syncing %s", store->path, folder);
	}
	return true;
}

bool temp_rename(struct store *store, struct temp *temp, const char *path, struct error *err)
{
	int renamed = point("store.renaming")
	                      ? -1
	                      : renameat(store->folder_fd, temp->name, store->folder_fd, path);
	if (renamed < 0 && errno == ENOENT) {
		if (!folder_make_parents(store, path, err)) {
			return error_prefix(err, "store %s", store->path);
		}
		renamed = renameat(store->folder_fd, temp->name, store->folder_fd, path);
	}
	if (renamed < 0) {
		return error_set_errno(err, errno, "store %s: writing %s", store->path, path);
	}
	fd_close(&temp->fd);
	return true;
}

bool temp_publish(struct store *store, struct temp *temp, const char *path, struct error *err)
{
	if (point("store.writing") || fsync(temp->fd) < 0) {
		return error_set_errno(err, errno, "store %s: writing %s", store->path, path);
	}
	bool renamed = temp_rename(store, temp, path, err);
	point("store.renamed");
	return renamed && sync_folder_of(store, path, err);
}

/* ---- the repository ---- */

static const char *const folders[] = {"objects", "objects/pack", "objects/info", "refs",
	"refs/heads", "refs/tags", "refs/acp-broker", "info", "big", "delta", "tmp", "cache"};

/*
 * Big blobs are neither compressed nor stored as deltas, because a pack is only made to be sent
 * once. HEAD is written last: if it exists, everything does.
 */
static const struct {
	const char *path, *content;
} files[] = {
	{"config", "[core]\n"
		   "\trepositoryformatversion = 0\n"
		   "\tfilemode = true\n"
		   "\tbare = true\n"
		   "\tcompression = 0\n"
		   "\tlooseCompression = 1\n"
		   "\tbigFileThreshold = 1\n"
		   "\tautocrlf = false\n"
		   "\tlogAllRefUpdates = false\n"
		   "[gc]\n"
		   "\tauto = 0\n"
		   "\tpackRefs = false\n"},
	{"HEAD", "ref: refs/heads/none\n"},
};

static bool make_file(struct store *store, const char *path, const char *content, struct error *err)
{
	struct temp temp = {.fd = -1};
	bool made = temp_create(store, &temp, err) &&
	            fd_write_all(temp.fd, span_of(content), err) &&
	            temp_publish(store, &temp, path, err);
	temp_discard(store, &temp);
	return made;
}

static bool make_repository(struct store *store, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(folders); i++) {
		if (!make_folder(store->folder_fd, folders[i], err)) {
			return error_prefix(err, "store %s", store->path);
		}
	}
	point("store.folders");
	for (size_t i = 0; i < ARRAY_LENGTH(files); i++) {
		if (faccessat(store->folder_fd, files[i].path, F_OK, 0) < 0 &&
			!make_file(store, files[i].path, files[i].content, err)) {
			return false;
		}
	}
	return true;
}

bool folder_open(struct store *store, struct error *err)
{
	if (!make_parents(AT_FDCWD, store->path, err) || !make_folder(AT_FDCWD, store->path, err)) {
		return error_prefix(err, "opening the store %s", store->path);
	}
	store->folder_fd = open(store->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->folder_fd < 0 || fchmod(store->folder_fd, 0700) < 0) {
		return error_set_errno(err, errno, "opening the store %s", store->path);
	}
	if (!make_repository(store, err)) {
		return false;
	}
	store->big_fd = openat(store->folder_fd, "big", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return store->big_fd >= 0 || error_set_errno(err, errno, "store %s/big", store->path);
}

/* ---- remains of killed writers ---- */

enum { STALE_SECONDS = 3600 };

/* Where temporary files are, and the prefixes of their names. */
static const struct {
	const char *folder, *prefix;
} litter[] = {
	{"tmp", ""},
	{"objects", "tmp_object_"},
	{"objects/pack", "pack_git2_"},
	{"objects/pack", "tmp_"},
};

static bool is_stale(const struct stat *status)
{
	return status->st_mtime + STALE_SECONDS < time(NULL);
}

static void sweep_entry(struct store *store, int fd, const char *folder, const char *name)
{
	char path[PATH_MAX];
	struct stat status;
	if (fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !is_stale(&status)) {
		return;
	}
	if (S_ISREG(status.st_mode)) {
		unlinkat(fd, name, 0);
	} else if (S_ISDIR(status.st_mode) && name[0] != '.' && strcmp(folder, "tmp") == 0) {
		text_whole(path, sizeof(path), "%s/%s", folder, name);
		folder_remove(store, path);
	}
}

static DIR *open_stream(int at, const char *folder)
{
	int fd = openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		fd_close(&fd);
	}
	return stream;
}

void folder_remove(struct store *store, const char *path)
{
	DIR *stream = open_stream(store->folder_fd, path);
	struct dirent *entry;
	while (stream && (entry = readdir(stream))) {
		if (unlinkat(dirfd(stream), entry->d_name, 0) < 0) {
			unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR);
		}
	}
	if (stream) {
		closedir(stream);
	}
	unlinkat(store->folder_fd, path, AT_REMOVEDIR);
}

static void sweep_folder(struct store *store, const char *folder, const char *prefix)
{
	DIR *stream = open_stream(store->folder_fd, folder);
	struct dirent *entry;
	while (stream && (entry = readdir(stream))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0) {
			sweep_entry(store, dirfd(stream), folder, entry->d_name);
		}
	}
	if (stream) {
		closedir(stream);
	}
}

void folder_sweep(struct store *store)
{
	for (size_t i = 0; i < ARRAY_LENGTH(litter); i++) {
		sweep_folder(store, litter[i].folder, litter[i].prefix);
	}
}
