/* SPDX-License-Identifier: MIT */
#include "providers/local/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/libc.h"

/* ---- giving ---- */

struct giving {
	const struct owner *owner;
	const atomic_bool *is_cancelled;
	struct owner_left *left;
	const char *folder; // for messages
	size_t depth;
	struct error *err;
};

static bool is_given(const struct owner *owner, const struct stat *status)
{
	return status->st_uid == owner->uid && status->st_gid == owner->gid;
}

/* The kernel clears the set-user-ID bit of a file that changes its owner. */
bool owner_give_one(int folder, const struct owner *owner)
{
	struct stat status;
	return (fstat(folder, &status) == 0 && is_given(owner, &status)) ||
	       fchownat(folder, "", owner->uid, owner->gid, AT_EMPTY_PATH) == 0;
}

/* Whether somebody has replaced the name meanwhile, or another file system is mounted there. */
static bool is_elsewhere(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == EXDEV ||
	       errnum == EAGAIN;
}

/* Opens one name without following a link or entering another mount. */
static int open_one(int folder, const char *name, int flags)
{
	const struct open_how how = {
		.flags = (unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};
	return (int)syscall(SYS_openat2, folder, name, &how, sizeof(how));
}

static bool fail(const struct giving *giving, int errnum)
{
	return error_set_errno(giving->err, errnum, "giving %s to user %u", giving->folder,
		(unsigned)giving->owner->uid);
}

static bool give_folder(struct giving *giving, int folder);

static bool enter(struct giving *giving, int folder, const char *name)
{
	if (giving->depth >= OWNER_DEPTH_MAX) {
		giving->left->deep++;
		return true;
	}
	ATTR_CLEANUP(fd_cleanup) int below = open_one(folder, name, O_RDONLY | O_DIRECTORY);
	if (below < 0) {
		return is_elsewhere(errno) || fail(giving, errno);
	}
	giving->depth++;
	bool is_given = give_folder(giving, below);
	giving->depth--;
	return is_given;
}

static bool give_name(struct giving *giving, int folder, const char *name)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = open_one(folder, name, O_PATH);
	if (fd < 0 || fstat(fd, &status) != 0) {
		return is_elsewhere(errno) || fail(giving, errno);
	}
	if (S_ISDIR(status.st_mode)) {
		fd_close(&fd);
		return enter(giving, folder, name);
	}
	if (is_given(giving->owner, &status) ||
		(!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode))) {
		return true;
	}
	if (S_ISREG(status.st_mode) && status.st_nlink > 1) {
		giving->left->linked++;
		return true;
	}
	return owner_give_one(fd, giving->owner) || fail(giving, errno);
}

/* Gives the folder itself last, so that its new owner finds everything in it already given. */
static bool give_folder(struct giving *giving, int folder)
{
	int listed = fcntl(folder, F_DUPFD_CLOEXEC, 0);
	DIR *names = listed >= 0 ? fdopendir(listed) : NULL;
	const struct dirent *entry;
	bool is_done = true;
	if (!names) {
		int errnum = errno;
		fd_close(&listed);
		return fail(giving, errnum);
	}
	while (is_done && (entry = readdir(names))) {
		const char *name = entry->d_name;
		if (atomic_load(giving->is_cancelled)) {
			is_done =
				error_set(giving->err, ERROR_UNAVAILABLE, "the copy was cancelled");
		} else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
			is_done = give_name(giving, folder, name);
		}
	}
	closedir(names);
	return is_done && (owner_give_one(folder, giving->owner) || fail(giving, errno));
}

bool owner_give(const char *folder, const struct owner *owner, const atomic_bool *is_cancelled,
	struct owner_left *left, struct error *err)
{
	struct giving giving = {.owner = owner,
		.is_cancelled = is_cancelled,
		.left = left,
		.folder = folder,
		.err = err};
	ATTR_CLEANUP(fd_cleanup) int top = beneath_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
	return top >= 0 ? give_folder(&giving, top) : fail(&giving, errno);
}
