/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/take_impl.h"

/* The content of our lock files for git's index: it identifies the lock of a killed take. */
static const char mark[] = "acp-broker commits take\n";

static void name_file(const struct take *take, const char *name, char path[PATH_MAX])
{
	text_whole(path, PATH_MAX, "%s/%s", take->git.repository.folder, name);
}

/* A killed git leaves the draft's lock. Whoever holds the index's lock owns that one too. */
static void remove_draft(const struct take *take)
{
	char lock[PATH_MAX];
	name_file(take, "acp-broker-index.lock", lock);
	unlink(lock);
	unlink(take->git.draft);
}

/* ---- the lock ---- */

/* Whether a killed take has left it: a living one locks the file before it writes the mark. */
static bool is_left(int fd, const char *path)
{
	char text[sizeof(mark)];
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return count == (ssize_t)sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0 &&
	       lock_file_try(fd, LOCK_ALONE) == LOCK_TAKEN &&
	       lock_file_is_current(fd, AT_FDCWD, path);
}

/* Two workspaces may be parts of one repository; the store's lock only protects one. */
static int create(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	int fd = open(path, flags, 0666);
	if (fd < 0 && errno == EEXIST) {
		ATTR_CLEANUP(fd_cleanup) int old = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		bool is_free = is_left(old, path) && unlink(path) == 0;
		fd = is_free ? open(path, flags, 0666) : -1;
		errno = is_free ? errno : EEXIST;
	}
	if (fd >= 0) {
		(void)!lock_file_try(fd, LOCK_ALONE);
	}
	return fd;
}

bool take_lock(struct take *take, struct error *err)
{
	char path[PATH_MAX];
	name_file(take, "index.lock", path);
	int fd = create(path);
	if (fd < 0 && errno == EEXIST) {
		return error_set(err, ERROR_UNAVAILABLE,
			"another git is running in %s: try again when it has ended; if "
			"there is none, it was killed: remove %s",
			take->request->root, path);
	}
	if (fd < 0) {
		return error_set_errno(err, errno, "making %s", path);
	}
	take->is_locked = true;
	take->lock_fd = fd;
	char draft[PATH_MAX];
	name_file(take, "acp-broker-index", draft);
	mem_set_text(&take->git.draft, draft);
	return fd_write_all(fd, span_of(mark), err);
}

void take_unlock(struct take *take)
{
	char path[PATH_MAX];
	if (!take->is_locked) {
		return;
	}
	remove_draft(take);
	name_file(take, "index.lock", path);
	unlink(path);
	fd_close(&take->lock_fd);
	take->is_locked = false;
}

/* ---- the draft ---- */

static bool copy(int from, int to, const char *path, struct error *err)
{
	char bytes[1 << 16];
	ssize_t count;
	while ((count = read(from, bytes, sizeof(bytes))) > 0) {
		if (!fd_write_all(to, (struct span){bytes, (size_t)count}, err)) {
			return false;
		}
	}
	return count == 0 || error_set_errno(err, errno, "reading %s", path);
}

/* A repository without a commit may have no index; then there is no draft either. */
bool take_draft(struct take *take, struct error *err)
{
	char path[PATH_MAX];
	name_file(take, "index", path);
	remove_draft(take);
	ATTR_CLEANUP(fd_cleanup) int from = open(path, O_RDONLY | O_CLOEXEC);
	if (from < 0) {
		return errno == ENOENT || error_set_errno(err, errno, "reading %s", path);
	}
	ATTR_CLEANUP(fd_cleanup)
	int to = open(take->git.draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0) {
		return error_set_errno(err, errno, "making %s", take->git.draft);
	}
	return copy(from, to, path, err);
}

/* git-read-tree(1) with two trees, which does not look at the files. */
bool take_move_draft(struct take *take, const char *from, const char *to, struct error *err)
{
	const char *const words[] = {"read-tree", "-i", "-m", from, to, NULL};
	struct user_git_call call = {.words = words, .is_on_draft = true};
	return user_git_run(&take->git, &call, err);
}

bool take_write_tree(struct take *take, char out_tree[TAKE_ID_SIZE], struct error *err)
{
	static const char *const words[] = {"write-tree", "--missing-ok", NULL};
	return user_git_line(&take->git, words, true, out_tree, TAKE_ID_SIZE, err);
}

bool take_publish(struct take *take, struct error *err)
{
	char path[PATH_MAX];
	name_file(take, "index", path);
	if (point("commits.publishing") || rename(take->git.draft, path) < 0) {
		return error_set_errno(err, errno, "writing %s", path);
	}
	point("commits.published");
	return true;
}
