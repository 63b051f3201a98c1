/* SPDX-License-Identifier: MIT */
#include "broker/init/user_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file_keep.h"
#include "base/folder.h"
#include "base/libc.h"
#include "base/real_path.h"
#include "base/text.h"

enum { READ_CHUNK = 64 << 10 };

static bool read_all(int fd, struct buf *content, struct error *err)
{
	for (;;) {
		char *to = buf_reserve(content, READ_CHUNK, err);
		ssize_t count = to ? read(fd, to, READ_CHUNK) : -1;
		if (count < 0 && to && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return to ? error_set_errno(err, errno, "reading") : false;
		}
		buf_commit(content, (size_t)count);
		if (content->len > USER_FILE_MAX) {
			return error_set(err, ERROR_CONFIG, "expected a file of at most 1 MiB");
		}
		if (count == 0) {
			return true;
		}
	}
}

bool user_file_read(struct user_file *file, const char *path, struct error *err)
{
	*file = (struct user_file){.path = path, .target = real_path(path)};
	buf_init(&file->content, USER_FILE_MAX + 2 * READ_CHUNK);
	int fd ATTR_CLEANUP(fd_cleanup) =
		open(file->target, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0) {
		return errno == ENOENT || error_set_errno(err, errno, "reading %s", path);
	}
	if (fstat(fd, &file->status) < 0) {
		return error_set_errno(err, errno, "reading %s", path);
	}
	if (!S_ISREG(file->status.st_mode)) {
		return error_set(err, ERROR_CONFIG, "%s: expected a file", path);
	}
	file->is_there = true;
	return read_all(fd, &file->content, err) || error_prefix(err, "%s", path);
}

void user_file_finish(struct user_file *file)
{
	free(file->target);
	buf_finish(&file->content);
}

/* ---- replacing ---- */

/* The folder of the target, and its name there. */
static char *folder_of(const struct user_file *file)
{
	size_t len = (size_t)(path_last_part(file->target) - file->target);
	return len > 1 ? mem_strndup((struct span){file->target, len - 1}) : mem_strdup("/");
}

static bool is_unchanged(const struct user_file *file, int folder)
{
	struct stat now;
	const struct stat *then = &file->status;
	if (fstatat(folder, path_last_part(file->target), &now, AT_SYMLINK_NOFOLLOW) != 0) {
		return errno == ENOENT && !file->is_there;
	}
	return file->is_there && now.st_dev == then->st_dev && now.st_ino == then->st_ino &&
	       now.st_size == then->st_size && now.st_mtim.tv_sec == then->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}

static bool write_draft(
	const struct user_file *file, int folder, int draft, struct span content, struct error *err)
{
	if (file->is_there) {
		ATTR_CLEANUP(fd_cleanup)
		int old = openat(
			folder, path_last_part(file->target), O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (!file_keep(old, &file->status, draft, err)) {
			return false;
		}
	}
	return fd_write_all(draft, content, err) &&
	       (fsync(draft) == 0 || error_set_errno(err, errno, "writing a draft"));
}

/* Replaces the file only if it is the one that was read, or is still missing as it was then. */
static bool put(const struct user_file *file, int folder, const char *draft, struct error *err)
{
	const char *name = path_last_part(file->target);
	if (!is_unchanged(file, folder)) {
		return error_set(err, ERROR_UNAVAILABLE,
			"somebody has changed it in the meantime: nothing was written; run it "
			"again");
	}
	int result = file->is_there ? renameat(folder, draft, folder, name)
	                            : libc_rename(folder, draft, folder, name, RENAME_NOREPLACE);
	if (result != 0 && !file->is_there && (errno == EINVAL || errno == ENOSYS)) {
		result = renameat(folder, draft, folder, name); // a file system without it
	}
	return (result == 0 || error_set_errno(err, errno, "putting a draft in its place")) &&
	       file_sync_folder(folder, err);
}

static bool replace_in(const struct user_file *file, const char *folder_path, struct span content,
	user_file_check *check, void *data, struct error *err)
{
	char draft[PATH_MAX];
	ATTR_CLEANUP(fd_cleanup)
	int folder = open(folder_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0) {
		return error_set_errno(err, errno, "opening %s", folder_path);
	}
	if (!text_whole(draft, sizeof(draft), "%s/.acp-broker-XXXXXX", folder_path)) {
		return error_set_errno(err, ENAMETOOLONG, "making a draft");
	}
	ATTR_CLEANUP(fd_cleanup) int fd = mkostemp(draft, O_CLOEXEC);
	if (fd < 0) {
		return error_set_errno(err, errno, "making a draft in %s", folder_path);
	}
	bool ok = write_draft(file, folder, fd, content, err) &&
	          (!check || check(data, draft, err)) &&
	          put(file, folder, path_last_part(draft), err);
	if (!ok) {
		unlink(draft);
	}
	return ok;
}

bool user_file_replace(const struct user_file *file, struct span content, user_file_check *check,
	void *data, struct error *err)
{
	char *folder = folder_of(file);
	bool ok =
		file->target[0] == '/' || error_set(err, ERROR_CONFIG, "expected an absolute path");
	ok = ok && folder_make(folder, err) && replace_in(file, folder, content, check, data, err);
	free(folder);
	return ok || error_prefix(err, "writing %s", file->path);
}
