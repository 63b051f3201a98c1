/* SPDX-License-Identifier: MIT */
#include "base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"

/* ---- acting as the owner ---- */

bool owner_enter(const struct owner *owner, struct error *err)
{
	if (!owner->is_other) {
		return true;
	}
	/*
	 * The C library's function would change all threads. The other two calls return the old
	 * value.
	 */
	bool is_alone = syscall(SYS_setgroups, 0, NULL) == 0;
	setfsgid(owner->gid);
	setfsuid(owner->uid);
	if (is_alone && (gid_t)setfsgid((gid_t)-1) == owner->gid &&
		(uid_t)setfsuid((uid_t)-1) == owner->uid) {
		return true;
	}
	owner_leave(owner);
	return error_set(err, ERROR_DENIED,
		"using files as user %u, which root is not allowed to do", (unsigned)owner->uid);
}

void owner_leave(const struct owner *owner)
{
	int errnum = errno;
	if (owner->is_other) {
		setfsuid(geteuid());
		setfsgid(getegid());
	}
	errno = errnum;
}

int owner_open(const struct owner *owner, int folder, const char *path, int flags)
{
	struct error ignored;
	if (!owner_enter(owner, &ignored)) {
		errno = EPERM;
		return -1;
	}
	int fd = beneath_open(folder, path, flags);
	bool is_closed = owner->is_other && fd >= 0 && (flags & O_DIRECTORY) &&
	                 faccessat(fd, ".", X_OK, AT_EACCESS) != 0;
	int errnum = errno;
	owner_leave(owner);
	if (is_closed) {
		fd_close(&fd);
	}
	errno = errnum;
	return fd;
}
