/* SPDX-License-Identifier: MIT */
#include "base/file_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

enum {
	KEPT_MODE = 0777,
	NAMES_MAX = 64 * 1024,   // bytes; the kernel's own limit, like the next one
	VALUE_MAX = 64 * 1024,   // of one attribute
	TOTAL_MAX = 1024 * 1024, // of all copied attributes
	FD_PATH_SIZE = 64,
};

static const char access_list[] = "system.posix_acl_access";

/* A path for a file descriptor, also for an O_PATH one. */
static const char *path_of(int fd, char path[FD_PATH_SIZE])
{
	snprintf(path, FD_PATH_SIZE, "/proc/self/fd/%d", fd);
	return path;
}

/* Sets *out_len to 0 if the attribute is missing; returns false if it cannot be read. */
static bool read_attribute(int fd, const char *name, char *value, size_t *out_len)
{
	char path[FD_PATH_SIZE];
	ssize_t len = getxattr(path_of(fd, path), name, value, VALUE_MAX);
	*out_len = len > 0 ? (size_t)len : 0;
	return len >= 0 || errno == ENODATA || errno == ENOTSUP;
}

/*
 * Copies the access control list. Without one, removes what the draft may have inherited from its
 * folder.
 */
static bool keep_access_list(int old, int draft, char *value)
{
	size_t len;
	if (!read_attribute(old, access_list, value, &len)) {
		return false;
	}
	if (len > 0) {
		return fsetxattr(draft, access_list, value, len, 0) == 0;
	}
	return fremovexattr(draft, access_list) == 0 || errno == ENODATA || errno == ENOTSUP;
}

static bool is_carried(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.selinux") == 0 ||
	       strcmp(name, "security.SMACK64") == 0;
}

/* Copies attributes that do not control access. */
static void keep_attributes(int old, int draft, char *value)
{
	char path[FD_PATH_SIZE];
	char *names = mem_alloc(NAMES_MAX);
	size_t total = 0;
	ssize_t size = listxattr(path_of(old, path), names, NAMES_MAX);
	for (ssize_t at = 0; at < size && total < TOTAL_MAX;
		at += (ssize_t)strlen(names + at) + 1) {
		ssize_t len =
			is_carried(names + at) ? getxattr(path, names + at, value, VALUE_MAX) : -1;
		if (len >= 0 && fsetxattr(draft, names + at, value, (size_t)len, 0) == 0) {
			total += (size_t)len;
		}
	}
	free(names);
}

static bool has_attributes(int fd)
{
	char path[FD_PATH_SIZE];
	return listxattr(path_of(fd, path), NULL, 0) > 0;
}

bool file_keep(int old, const struct stat *status, int draft, struct error *err)
{
	/* Keeps another owner if we may; otherwise the file becomes ours. */
	if (fchown(draft, status->st_uid, status->st_gid) != 0 &&
		fchown(draft, (uid_t)-1, status->st_gid) != 0) {
		errno = 0;
	}
	bool is_kept = true;
	if (has_attributes(old) || has_attributes(draft)) {
		char *value = mem_alloc(VALUE_MAX);
		is_kept = keep_access_list(old, draft, value);
		int errnum = errno;
		keep_attributes(old, draft, value);
		free(value);
		errno = errnum;
	}
	if (!is_kept || fchmod(draft, status->st_mode & KEPT_MODE) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "keeping its permissions");
	}
	return true;
}

bool file_sync_folder(int folder, struct error *err)
{
	char path[FD_PATH_SIZE];
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path_of(folder, path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS) {
		return true;
	}
	int errnum = errno;
	return error_set_errno(err, errnum, "its folder cannot be saved");
}
