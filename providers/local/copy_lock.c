/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/lock_file.h"

enum { LOOK_MS = 20 };

static bool wait_for(int fd, int timeout_ms, const atomic_bool *is_cancelled, const char *folder,
	struct error *err)
{
	enum lock_state lock = lock_file_wait(
		fd, &(struct lock_wait){.look_ms = LOOK_MS,
			    .deadline_ms =
				    timeout_ms > 0 ? clock_now_ms() + timeout_ms : LOCK_NO_DEADLINE,
			    .is_cancelled = is_cancelled});
	if (lock == LOCK_FAILED) {
		return error_set_errno(err, errno, "locking %s", folder);
	}
	if (lock == LOCK_ELSEWHERE && atomic_load(is_cancelled)) {
		return error_set(err, ERROR_UNAVAILABLE, "the copy was cancelled");
	}
	if (lock == LOCK_ELSEWHERE) {
		return error_set_reason(err, ERROR_TIMEOUT, "TIMEOUT_EXCEEDED",
			"another session has been copying ignored files to %s for %d s "
			"(prepare-timeout)",
			folder, timeout_ms / 1000);
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
