/* SPDX-License-Identifier: MIT */
#include "base/remove_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"
#include "base/text.h"

/*
 * Works on descriptors and follows no link: a program that still runs in a copy may make links at
 * any moment, and their targets do not belong to the copy. A folder deeper than this is first moved
 * up to the top.
 */
enum { DEPTH_MAX = 64, MOVED_NAME_MAX = 48 };

struct removal {
	int top;                  // the folder to remove
	unsigned long long moved; // folders that were moved up
};

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Makes an unreadable folder readable. -1: it is not a folder, or see errno. */
static int open_folder(int parent, const char *name)
{
	char path[64];
	const int flags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(parent, name, O_RDONLY | flags);
	if (fd < 0 && errno == EACCES) {
		ATTR_CLEANUP(fd_cleanup) int closed = openat(parent, name, O_PATH | flags);
		text_whole(path, sizeof(path), "/proc/self/fd/%d", closed);
		if (closed < 0 || chmod(path, S_IRWXU) != 0) {
			return -1;
		}
		fd = openat(parent, name, O_RDONLY | flags);
	}
	struct stat status;
	if (fd >= 0 && fstat(fd, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU) {
		fchmod(fd, status.st_mode | S_IRWXU);
	}
	return fd;
}

static bool move_up(struct removal *removal, int folder, const char *name)
{
	char moved[MOVED_NAME_MAX];
	do {
		text_whole(moved, sizeof(moved), ".acp-broker-removed-%llu", ++removal->moved);
	} while (libc_rename(folder, name, removal->top, moved, RENAME_NOREPLACE) != 0 &&
		 errno == EEXIST);
	return faccessat(removal->top, moved, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool empty(struct removal *removal, int folder, int depth);

/* False with errno. */
static bool remove_name(struct removal *removal, int folder, const char *name, int depth)
{
	if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) {
		return true;
	}
	if (errno != EISDIR && errno != EPERM) {
		return false;
	}
	if (depth >= DEPTH_MAX) {
		return move_up(removal, folder, name);
	}
	ATTR_CLEANUP(fd_cleanup) int fd = open_folder(folder, name);
	if (fd < 0) {
		return errno == ENOENT;
	}
	return empty(removal, fd, depth + 1) &&
	       (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

static bool empty(struct removal *removal, int folder, int depth)
{
	int fd = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *open = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool is_done = open != NULL;
	while (is_done && (entry = readdir(open))) {
		is_done =
			is_dot(entry->d_name) || remove_name(removal, folder, entry->d_name, depth);
	}
	int errnum = errno;
	if (open) {
		closedir(open);
	} else {
		fd_close(&fd);
	}
	errno = errnum;
	return is_done;
}

/* Repeats this, because moved folders are in it again. */
static bool empty_top(struct removal *removal)
{
	unsigned long long before;
	do {
		before = removal->moved;
		if (lseek(removal->top, 0, SEEK_SET) < 0 || !empty(removal, removal->top, 1)) {
			return false;
		}
	} while (removal->moved != before);
	return true;
}

bool remove_folder(const char *path, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int top = open_folder(AT_FDCWD, path);
	struct removal removal = {.top = top};
	bool is_done = top >= 0 ? empty_top(&removal) && rmdir(path) == 0
	                        : errno == ENOENT || unlink(path) == 0;
	if (!is_done && errno != ENOENT) {
		int errnum = errno;
		return error_set_errno(err, errnum, "removing %s", path);
	}
	return true;
}
