/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/git.h"
#include "base/ignore_rules.h"
#include "base/libc.h"
#include "base/remove_folder.h"
#include "base/text.h"

enum { DEPTH_MAX = 200, CHUNK = 256 << 10 };

/* A folder that both trees have. In the copy it is made only when a file is copied into it. */
struct level {
	struct level *up; // NULL: the root
	const char *name;
	int from, to; // to: -1 until it is made
};

struct copying {
	const struct ignored_copy *request;
	const struct git *git;
	git_repository *rules;
	int own;             // the folder `own` of the request
	unsigned files;      // number of copied files; gives each a different temporary name
	char path[PATH_MAX]; // below the root; "" for the root itself
	size_t depth;
	struct error *err;
};

/* ---- one file or folder ---- */

static bool open_target(struct level *level)
{
	if (level->to >= 0) {
		return true;
	}
	if (!level->up || !open_target(level->up)) {
		return false;
	}
	struct stat status;
	mode_t mode = fstat(level->from, &status) == 0 ? status.st_mode & 07777 : 0755;
	if (mkdirat(level->up->to, level->name, mode | S_IRWXU) != 0 && errno != EEXIST) {
		return false;
	}
	level->to =
		openat(level->up->to, level->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return level->to >= 0;
}

static bool copy_bytes(int from, int to)
{
	if (ioctl(to, FICLONE, from) == 0) {
		return true;
	}
	ssize_t count;
	do {
		count = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
	} while (count > 0);
	if (count == 0) {
		return true;
	}
	char *chunk = mem_alloc(CHUNK);
	while ((count = read(from, chunk, CHUNK)) > 0) {
		if (!fd_write_all(to, (struct span){chunk, (size_t)count}, NULL)) {
			count = -1;
			break;
		}
	}
	free(chunk);
	return count == 0;
}

/* Counts a source that the owner may not read. */
static int open_source(
	const struct copying *copying, int folder, const char *name, int flags, bool is_wanted)
{
	const struct ignored_copy *request = copying->request;
	int fd = owner_open(&request->owner, folder, name, O_RDONLY | O_NOFOLLOW | flags);
	if (fd < 0 && is_wanted && request->owner.is_other && (errno == EACCES || errno == EPERM)) {
		(*request->out_forbidden)++;
	}
	return fd;
}

/*
 * Returns false if the file is not copied; only a full disk ends the whole copy. The file is first
 * written in our own folder, so that the copy never contains a temporary file, even after a kill.
 */
static bool copy_file(
	struct copying *copying, struct level *level, const char *name, const struct stat *status)
{
	char temp[32];
	ATTR_CLEANUP(fd_cleanup)
	int from = open_source(copying, level->from, name, O_NONBLOCK, true);
	if (from < 0 || !open_target(level)) {
		return false;
	}
	snprintf(temp, sizeof(temp), "file-%u", copying->files++);
	ATTR_CLEANUP(fd_cleanup)
	int to = openat(copying->own, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct timespec times[] = {status->st_atim, status->st_mtim};
	bool copied = to >= 0 && copy_bytes(from, to) && fchmod(to, status->st_mode & 0777) == 0 &&
	              futimens(to, times) == 0 &&
	              libc_rename(copying->own, temp, level->to, name, RENAME_NOREPLACE) == 0;
	int errnum = errno;
	if (to >= 0 && !copied) {
		unlinkat(copying->own, temp, 0);
	}
	errno = errnum;
	return copied;
}

static bool copy_link(struct level *level, const char *name)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(level->from, name, target, sizeof(target) - 1);
	if (length <= 0 || !open_target(level)) {
		return false;
	}
	target[length] = '\0';
	return symlinkat(target, level->to, name) == 0;
}

/* ---- the walk ---- */

static bool is_ignored(struct copying *copying, bool is_folder)
{
	char path[PATH_MAX + 2];
	int ignored = 0;
	text_whole(path, sizeof(path), "%s%s", copying->path, is_folder ? "/" : "");
	return copying->git->ignore_path_is_ignored(&ignored, copying->rules, path) == 0 && ignored;
}

static bool copy_folder(struct copying *copying, struct level *level, bool all);

static bool enter_folder(struct copying *copying, struct level *level, const char *name, bool all)
{
	struct level below = {.up = level, .name = name, .to = -1};
	below.from = open_source(copying, level->from, name, O_DIRECTORY, all);
	if (below.from < 0 || copying->depth >= DEPTH_MAX) {
		fd_close(&below.from);
		return true;
	}
	copying->depth++;
	bool copied = (!all || open_target(&below)) ? copy_folder(copying, &below, all) : true;
	copying->depth--;
	fd_close(&below.from);
	fd_close(&below.to);
	return copied;
}

static bool copy_entry(struct copying *copying, struct level *level, const char *name, bool all)
{
	struct stat status;
	if (fstatat(level->from, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		return true;
	}
	bool is_folder = S_ISDIR(status.st_mode);
	bool takes = all || is_ignored(copying, is_folder) ||
	             (strcmp(name, ".gitignore") == 0 && S_ISREG(status.st_mode));
	if (is_folder) {
		return enter_folder(copying, level, name, takes);
	}
	errno = 0;
	if (takes && S_ISREG(status.st_mode) && !copy_file(copying, level, name, &status) &&
		(errno == ENOSPC || errno == EDQUOT)) {
		int errnum = errno;
		return error_set_errno(copying->err, errnum, "copying %s/%s to %s",
			copying->request->from, copying->path, copying->request->to);
	}
	if (takes && S_ISLNK(status.st_mode)) {
		copy_link(level, name);
	}
	return true;
}

static bool copy_folder(struct copying *copying, struct level *level, bool all)
{
	int fd = openat(level->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	size_t length = strlen(copying->path);
	const struct dirent *entry;
	bool copied = true;
	while (copied && folder && (entry = readdir(folder))) {
		const char *name = entry->d_name;
		int added = snprintf(copying->path + length, sizeof(copying->path) - length, "%s%s",
			length ? "/" : "", name);
		bool is_own = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		              (strcmp(name, ".git") == 0 && !all);
		bool fits = (size_t)added < sizeof(copying->path) - length;
		if (atomic_load(copying->request->is_cancelled)) {
			copied = error_set(
				copying->err, ERROR_UNAVAILABLE, "the copy was cancelled");
		} else if (fits && !is_own) {
			copied = copy_entry(copying, level, name, all);
		}
		copying->path[length] = '\0';
	}
	if (folder) {
		closedir(folder);
	} else {
		fd_close(&fd);
	}
	return copied;
}

/* ---- the rules ---- */

static bool write_rules(const struct ignored_copy *request)
{
	char path[PATH_MAX];
	struct buf rules;
	buf_init(&rules, IGNORE_RULES_MAX);
	ignore_rules_read(request->from, request->home, &rules);
	text_whole(path, sizeof(path), "%s/info", request->own);
	mkdir(path, 0700);
	text_whole(path, sizeof(path), "%s/info/exclude", request->own);
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool written = fd >= 0 && fd_write_all(fd, buf_span(&rules), NULL);
	buf_finish(&rules);
	return written;
}

/*
 * Opens an empty repository with the workspace as its work tree, so that the user's own repository
 * is not opened.
 */
static bool open_rules(struct copying *copying, struct error *err)
{
	const struct ignored_copy *request = copying->request;
	const struct git *git = copying->git;
	return (git->repository_init(&copying->rules, request->own, 1) == 0 &&
		       git->repository_set_workdir(copying->rules, request->from, 0) == 0 &&
		       write_rules(request)) ||
	       error_set_git(git, err, "finding the ignored files in %s", request->from);
}

bool copy_ignored(const struct ignored_copy *request, struct error *err)
{
	struct copying copying = {.request = request, .git = git_open(err), .own = -1, .err = err};
	struct level root = {.from = -1, .to = -1};
	if (!copying.git) {
		return false;
	}
	bool copied = remove_folder(request->own, err) && open_rules(&copying, err);
	if (copied) {
		copying.own = open(request->own, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		root.from = open(request->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		root.to = open(request->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		copied = copying.own >= 0 && root.from >= 0 && root.to >= 0
		                 ? copy_folder(&copying, &root, false)
		                 : error_set_errno(err, errno, "copying %s to %s", request->from,
					   request->to);
	}
	fd_close(&root.from);
	fd_close(&root.to);
	fd_close(&copying.own);
	copying.git->repository_free(copying.rules);
	git_close();
	return remove_folder(request->own, copied ? err : NULL) && copied;
}
