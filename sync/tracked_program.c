/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sync/run_git.h"
#include "sync/store_impl.h"
#include "sync/tracked.h"

static bool write_file(int folder, const char *name, const char *content, struct error *err)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd ATTR_CLEANUP(fd_cleanup) = openat(folder, name, flags, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing %s", name);
	}
	return fd_write_all(fd, span_of(content), err);
}

static bool copy_file(int from_folder, int to_folder, const char *name, struct error *err)
{
	struct stat status;
	int from ATTR_CLEANUP(fd_cleanup) = openat(from_folder, name, O_RDONLY | O_CLOEXEC);
	int to ATTR_CLEANUP(fd_cleanup) =
		openat(to_folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (from < 0 || to < 0 || fstat(from, &status) < 0) {
		return error_set_errno(err, errno, "copying %s", name);
	}
	off_t left = status.st_size;
	while (left > 0) {
		ssize_t count = sendfile(to, from, NULL, (size_t)left);
		if (count <= 0) {
			return error_set_errno(err, count < 0 ? errno : EIO, "copying %s", name);
		}
		left -= count;
	}
	return true;
}

/* Copies the index, and the shared index of a split one. */
static bool copy_index(const char *from, int to_folder, struct error *err)
{
	int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		int errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "%s", from);
	}
	bool copied = true;
	struct dirent *entry;
	while (copied && (entry = readdir(stream))) {
		if (strcmp(entry->d_name, "index") == 0 ||
			strncmp(entry->d_name, "sharedindex.", strlen("sharedindex.")) == 0) {
			copied = copy_file(fd, to_folder, entry->d_name, err);
		}
	}
	closedir(stream);
	return copied;
}

static bool fill_folder(
	const struct tracked *tracked, int folder, bool is_sha256, struct error *err)
{
	const char *config = is_sha256 ? "[core]\n\trepositoryformatversion = 1\n"
	                                 "[extensions]\n\tobjectformat = sha256\n"
	                               : "[core]\n\trepositoryformatversion = 0\n";
	if (mkdirat(folder, "refs", 0700) < 0 || mkdirat(folder, "objects", 0700) < 0) {
		return error_set_errno(err, errno, "making a directory");
	}
	return write_file(folder, "HEAD", "ref: refs/heads/none\n", err) &&
	       write_file(folder, "config", config, err) &&
	       copy_index(tracked->repository.folder, folder, err);
}

/*
 * Outside of a sparse index's cone this lists only directories; an old git does not know the
 * option.
 */
static bool list(struct tracked *tracked, const char *folder, struct error *err)
{
	char git_dir[PATH_MAX + 16], work_tree[PATH_MAX + 16];
	text_whole(git_dir, sizeof(git_dir), "--git-dir=%s", folder);
	text_whole(work_tree, sizeof(work_tree), "--work-tree=%s", tracked->repository.top);
	const char *const options[] = {"--sparse", NULL};
	bool listed = false;
	for (size_t i = 0; !listed && i < ARRAY_LENGTH(options); i++) {
		const char *const argv[] = {"git", git_dir, work_tree, "-C",
			tracked->repository.top, "ls-files", "-z", "--cached", options[i], NULL};
		buf_clear(&tracked->listed);
		listed = run_git(argv, &tracked->listed, err);
	}
	return listed;
}

bool tracked_ask_program(struct tracked *tracked, bool is_sha256, struct error *err)
{
	char path[PATH_MAX];
	int length = snprintf(path, sizeof(path), "%s/tmp/git-XXXXXX", tracked->store->path);
	if (length >= (int)sizeof(path) || !mkdtemp(path)) {
		return error_set_errno(err, errno, "making a directory");
	}
	int folder ATTR_CLEANUP(fd_cleanup) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool listed = folder >= 0 && fill_folder(tracked, folder, is_sha256, err) &&
	              list(tracked, path, err);
	folder_remove(tracked->store, path + strlen(tracked->store->path) + 1);
	return listed;
}
