/* SPDX-License-Identifier: MIT */
#include "base/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"

int lock_file_open(int folder_fd, const char *name)
{
	return openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

enum lock_state lock_file_try(int fd, enum lock_kind kind)
{
	if (flock(fd, (kind == LOCK_SHARED ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
		return LOCK_TAKEN;
	}
	return errno == EWOULDBLOCK || errno == EINTR ? LOCK_ELSEWHERE : LOCK_FAILED;
}

void lock_file_release(int fd)
{
	flock(fd, LOCK_UN);
}

bool lock_file_is_current(int fd, int folder_fd, const char *name)
{
	struct stat there, held;
	return fstatat(folder_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &held) == 0 && there.st_ino == held.st_ino && there.st_dev == held.st_dev;
}

enum lock_state lock_file_wait(int fd, const struct lock_wait *wait)
{
	const struct timespec look = {
		.tv_sec = wait->look_ms / 1000, .tv_nsec = wait->look_ms % 1000 * 1000000L};
	bool was_told = false;
	enum lock_state state;
	while ((state = lock_file_try(fd, LOCK_ALONE)) == LOCK_ELSEWHERE) {
		if ((wait->is_cancelled && atomic_load(wait->is_cancelled)) ||
			clock_now_ms() >= wait->deadline_ms) {
			break;
		}
		if (wait->on_wait && !was_told) {
			was_told = true;
			wait->on_wait();
		}
		nanosleep(&look, NULL);
	}
	return state;
}
