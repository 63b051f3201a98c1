/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"

enum { LOOK_NS = 20 * 1000 * 1000 };

static bool wait_for(int fd, int timeout_ms, const atomic_bool *is_cancelled, const char *folder,
	struct error *err)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	long long deadline_ms = clock_now_ms() + timeout_ms;
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return error_set_errno(err, errno, "locking %s", folder);
		}
		if (atomic_load(is_cancelled)) {
			return error_set(err, ERROR_UNAVAILABLE, "the copy was given up");
		}
		if (timeout_ms > 0 && clock_now_ms() >= deadline_ms) {
			return error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
				"another session has been copying what is ignored here to %s for "
				"%d s (prepare-timeout)",
				folder, timeout_ms / 1000);
		}
		nanosleep(&look, NULL);
	}
	return true;
}

bool copy_is_in_place(int fd, const char *folder)
{
	struct stat locked, there;
	return fstat(fd, &locked) == 0 && stat(folder, &there) == 0 &&
	       locked.st_ino == there.st_ino && locked.st_dev == there.st_dev;
}

bool copy_lock(const char *folder, int timeout_ms, const atomic_bool *is_cancelled, int *out_fd,
	struct error *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		return errnum == ENOENT ? error_set(err, ERROR_NOT_FOUND, "%s is gone", folder)
		                        : error_set_errno(err, errnum, "locking %s", folder);
	}
	bool locked = wait_for(fd, timeout_ms, is_cancelled, folder, err);
	if (locked && !copy_is_in_place(fd, folder)) {
		locked = error_set(err, ERROR_NOT_FOUND, "%s is gone", folder);
	}
	if (!locked) {
		fd_close(&fd);
		return false;
	}
	*out_fd = fd;
	return true;
}
