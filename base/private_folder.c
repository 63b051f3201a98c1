/* SPDX-License-Identifier: MIT */
#include "base/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/text.h"

static const char *const places[] = {"XDG_RUNTIME_DIR=", "TMPDIR="};

/* Holds the lock while the folder is in use; the kernel releases it when the program is killed. */
static int lock(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && lock_file_try(fd, LOCK_ALONE) != LOCK_TAKEN) {
		fd_close(&fd);
	}
	return fd;
}

/* A program that was killed while it made its socket may leave it under another name. */
static void remove_all(const char *path)
{
	DIR *folder = opendir(path);
	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		unlinkat(dirfd(folder), entry->d_name, 0);
	}
	if (folder) {
		closedir(folder);
	}
	rmdir(path);
}

/* Removes the folders that killed brokers left: ours, and not locked. */
static void sweep(const char *place, const char *prefix)
{
	DIR *folder = opendir(place);
	for (const struct dirent *entry; folder && (entry = readdir(folder));) {
		char path[PRIVATE_FOLDER_MAX];
		struct stat status;
		int len = snprintf(path, sizeof(path), "%s/%s", place, entry->d_name);
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || len < 0 ||
			(size_t)len >= sizeof(path)) {
			continue;
		}
		int fd ATTR_CLEANUP(fd_cleanup) = lock(path);
		if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid()) {
			remove_all(path);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

/* Another broker's sweep may remove the folder before it is locked; then makes another one. */
static int make_locked(char *path, const char *place, const char *prefix)
{
	enum { TRIES = 8 };
	for (int i = 0; i < TRIES; i++) {
		struct stat status;
		text_whole(path, PRIVATE_FOLDER_MAX, "%s/%sXXXXXX", place, prefix);
		if (!mkdtemp(path)) {
			return -1;
		}
		int fd = lock(path);
		if (fd >= 0 && stat(path, &status) == 0) {
			return fd;
		}
		fd_close(&fd);
		rmdir(path);
	}
	return -1;
}

static bool make_in(struct private_folder *folder, const char *place, const char *prefix)
{
	char path[PRIVATE_FOLDER_MAX];
	if (place[0] != '/' || strlen(place) + strlen(prefix) + sizeof("/XXXXXX") > sizeof(path)) {
		return false;
	}
	sweep(place, prefix);
	folder->lock_fd = make_locked(path, place, prefix);
	if (folder->lock_fd < 0) {
		return false;
	}
	memcpy(folder->path, path, sizeof(path));
	return true;
}

bool private_folder_make(struct private_folder *folder, const char *prefix, const char *what,
	const char *const *environment, struct error *err)
{
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		size_t len = strlen(places[i]);
		for (const char *const *entry = environment; entry && *entry; entry++) {
			if (strncmp(*entry, places[i], len) == 0 &&
				make_in(folder, *entry + len, prefix)) {
				return true;
			}
		}
	}
	if (make_in(folder, "/tmp", prefix)) {
		return true;
	}
	int errnum = errno;
	return error_set_errno(
		err, errnum, "making a folder for %s in XDG_RUNTIME_DIR or /tmp", what);
}

void private_folder_remove(struct private_folder *folder)
{
	if (folder->path[0]) {
		remove_all(folder->path);
		fd_close(&folder->lock_fd);
		folder->path[0] = '\0';
	}
}
