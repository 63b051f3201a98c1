/* SPDX-License-Identifier: MIT */
#include "sync/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#include "base/fd.h"
#include "sync/workspace.h"

enum { LOOK_NS = 50 * 1000 * 1000 };

int store_lock_open(struct store *store, struct error *err)
{
	int fd = openat(store->folder_fd, WORKSPACE_LOCK_NAME,
		O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_set_errno(err, errno, "locking %s", store->path);
	}
	return fd;
}

bool store_lock_try(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) == 0;
}

bool store_lock_wait(int fd, long long deadline_ms, void (*on_wait)(void), struct error *err)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	while (!store_lock_try(fd)) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return error_set_errno(err, errno, "locking the store");
		}
		if (clock_now_ms() >= deadline_ms) {
			return error_set(err, ERROR_TIMEOUT,
				"an acp-broker is still syncing this workspace");
		}
		if (on_wait) {
			on_wait();
			on_wait = NULL;
		}
		nanosleep(&look, NULL);
	}
	return true;
}
