/* SPDX-License-Identifier: MIT */
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/fd.h"
#include "base/like_folder.h"

/* For a symbolic link the kernel returns ENOTDIR, as for a file; openat2 returns ELOOP. */
static int keep_apart(int folder, const char *name, int errnum)
{
	struct stat status;
	bool is_link = errnum == ENOTDIR &&
	               fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
	               S_ISLNK(status.st_mode);
	return is_link ? ELOOP : errnum;
}

enum missing { MISSING_FAILS, MISSING_IS_MADE };

/* Opens the folder `name`, which must not be a symbolic link, for the next step. */
static int step_into(int folder, const char *name, enum missing missing)
{
	int flags = O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC;
	int next = openat(folder, name, flags);
	if (next < 0 && errno == ENOENT && missing == MISSING_IS_MADE) {
		if (like_folder_mkdir(folder, name, 0777) < 0 && errno != EEXIST) {
			return -1;
		}
		next = openat(folder, name, flags);
	}
	if (next < 0) {
		errno = keep_apart(folder, name, errno);
	}
	return next;
}

static int open_by_names(int folder, const char *path, int flags, enum missing missing)
{
	ATTR_CLEANUP(fd_cleanup) int at = -1;
	if (*path == '/') {
		at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		folder = at;
		path += strspn(path, "/");
	}
	size_t len;
	while (len = strcspn(path, "/"), path[len + strspn(path + len, "/")]) {
		char name[NAME_MAX + 1];
		if (len == 2 && memcmp(path, "..", 2) == 0) {
			errno = EXDEV;
			return -1;
		}
		if (snprintf(name, sizeof(name), "%.*s", (int)len, path) >= (int)sizeof(name)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		int next = step_into(folder, name, missing);
		if (next < 0) {
			return -1;
		}
		fd_close(&at);
		at = next;
		folder = next;
		path += len + strspn(path + len, "/");
	}
	if (strcmp(path, "..") == 0) {
		errno = EXDEV;
		return -1;
	}
	if (missing == MISSING_IS_MADE && *path) {
		int last = step_into(folder, path, missing);
		if (last < 0) {
			return -1;
		}
		close(last);
	}
	int fd = openat(folder, *path ? path : ".", flags | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		errno = keep_apart(folder, path, errno);
	}
	return fd;
}

#ifndef RESOLVE_CACHED // Linux 5.12
#define RESOLVE_CACHED 0x20
#endif

static atomic_bool is_missing; // openat2 is missing: one refusal is enough

int beneath_open(int folder, const char *path, int flags)
{
	if (is_missing) {
		return open_by_names(folder, path, flags, MISSING_FAILS);
	}
	struct open_how how = {
		.flags = (unsigned long long)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	if (folder != AT_FDCWD) {
		how.resolve |= RESOLVE_BENEATH;
	}
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
	if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
		is_missing = errno == ENOSYS;
		return open_by_names(folder, path, flags, MISSING_FAILS);
	}
	return fd;
}

int beneath_open_cached(int folder, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned long long)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_CACHED,
	};
	if (folder != AT_FDCWD) {
		how.resolve |= RESOLVE_BENEATH | RESOLVE_NO_XDEV;
	}
	return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

int beneath_open_folder(int root, const char *path, bool make)
{
	int flags = O_RDONLY | O_DIRECTORY;
	int fd = beneath_open(root, *path ? path : ".", flags);
	if (fd < 0 && errno == ENOENT && make) {
		return open_by_names(root, path, flags, MISSING_IS_MADE);
	}
	return fd;
}
