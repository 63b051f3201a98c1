/* SPDX-License-Identifier: MIT */
#include "sync/store_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/text.h"
#include "sync/workspace.h"

enum { LOOK_MS = 50 };

bool store_lock_find(const char *folder, int *out_fd, struct error *err)
{
	char path[PATH_MAX];
	if (!text_whole(path, sizeof(path), "%s/" WORKSPACE_LOCK_NAME, folder)) {
		return error_set_errno(err, ENAMETOOLONG, "locking %s", folder);
	}
	*out_fd = lock_file_open(AT_FDCWD, path);
	bool is_absent = *out_fd < 0 && (errno == ENOENT || errno == ENOTDIR);
	return *out_fd >= 0 || is_absent || error_set_errno(err, errno, "locking %s", folder);
}

int store_lock_open(struct store *store, struct error *err)
{
	int fd = lock_file_open(store->folder_fd, WORKSPACE_LOCK_NAME);
	if (fd < 0) {
		error_set_errno(err, errno, "locking %s", store->path);
	}
	return fd;
}

bool store_lock_try(int fd)
{
	return lock_file_try(fd, LOCK_ALONE) == LOCK_TAKEN;
}

bool store_lock_wait(int fd, long long deadline_ms, void (*on_wait)(void), struct error *err)
{
	enum lock_state lock = lock_file_wait(
		fd, &(struct lock_wait){
			    .look_ms = LOOK_MS, .deadline_ms = deadline_ms, .on_wait = on_wait});
	if (lock == LOCK_FAILED) {
		return error_set_errno(err, errno, "locking the store");
	}
	if (lock == LOCK_ELSEWHERE) {
		return error_set(
			err, ERROR_TIMEOUT, "an acp-broker is still syncing this workspace");
	}
	return true;
}
