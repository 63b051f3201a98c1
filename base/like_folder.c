/* SPDX-License-Identifier: MIT */
#include "base/like_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lets this thread create a file as the folder's owner. False: create it as we are. */
static bool enter(int folder)
{
	struct stat status;
	bool is_root = geteuid() == 0 && setfsuid((uid_t)-1) == 0;
	if (!is_root || fstat(folder, &status) != 0 || status.st_uid == 0) {
		return false;
	}
	setfsgid(status.st_gid);
	setfsuid(status.st_uid);
	return true;
}

static void leave(void)
{
	setfsuid(0);
	setfsgid(getegid());
}

static bool is_forbidden(int result)
{
	return result < 0 && (errno == EACCES || errno == EPERM);
}

int like_folder_open(int folder, const char *name, int flags, mode_t mode)
{
	if (enter(folder)) {
		int fd = openat(folder, name, flags | O_CREAT | O_EXCL, mode);
		leave();
		if (!is_forbidden(fd)) {
			return fd;
		}
	}
	return openat(folder, name, flags | O_CREAT | O_EXCL, mode);
}

int like_folder_mkdir(int folder, const char *name, mode_t mode)
{
	if (enter(folder)) {
		int result = mkdirat(folder, name, mode);
		leave();
		if (!is_forbidden(result)) {
			return result;
		}
	}
	return mkdirat(folder, name, mode);
}
