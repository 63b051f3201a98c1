/* SPDX-License-Identifier: MIT */
#include "providers/local/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/file_keep.h"
#include "base/libc.h"
#include "base/text.h"

enum {
	TRIES_MAX = 8, // while somebody replaces the file
	READ_MORE = 16384,
	NEW_FILE_MODE = 0666, // less the umask
	NAMES_MAX = 100,
};

bool file_stat(const struct confine *confine, const char *path, struct stat *out, struct error *err)
{
	struct confined found;
	if (!confine_walk(confine, path, CONFINE_MUST_EXIST, FILE_LINKS_FOLLOWED, &found, err)) {
		return false;
	}
	*out = found.status;
	confined_finish(&found);
	return true;
}

bool file_resolve(
	const struct confine *confine, const char *path, char out[PATH_MAX], struct error *err)
{
	struct confined found;
	if (!confine_walk(confine, path, CONFINE_MAY_MISS, FILE_LINKS_FOLLOWED, &found, err)) {
		return false;
	}
	text_whole(out, PATH_MAX, "%s", found.path);
	confined_finish(&found);
	return true;
}

bool file_find_root(const char *path, char out[PATH_MAX], struct error *err)
{
	char real[PATH_MAX];
	struct stat status;
	if (!realpath(path, real) || stat(real, &status) != 0) {
		int errnum = errno;
		if (errnum == ENOENT || errnum == ENOTDIR) {
			return error_set_reason(err, ERROR_NOT_FOUND, "DIRECTORY_NOT_FOUND",
				"workspace %s: %s", path, libc_error_text(errnum));
		}
		return error_set_errno(err, errnum, "workspace %s", path);
	}
	if (!S_ISDIR(status.st_mode)) {
		return error_set_reason(err, ERROR_NOT_FOUND, "DIRECTORY_NOT_FOUND",
			"workspace %s: it is no directory", path);
	}
	text_whole(out, PATH_MAX, "%s", real);
	return true;
}

static bool check_regular(const char *path, const struct stat *status, struct error *err)
{
	if (S_ISREG(status->st_mode)) {
		return true;
	}
	return confine_refuse(err, path,
		S_ISDIR(status->st_mode) ? "it is a directory" : "it is no regular file");
}

/* ---- reading ---- */

static bool check_size(
	const char *path, const struct stat *status, size_t max_bytes, struct error *err)
{
	if ((unsigned long long)status->st_size <= max_bytes) {
		return true;
	}
	return error_set(err, ERROR_LIMIT, "%s: it has %lld bytes, more than the allowed %zu", path,
		(long long)status->st_size, max_bytes);
}

/* Reads to the end, wherever that is by then: the size was but a hint, and is 0 in places. */
static bool read_to_end(
	int fd, const char *path, const struct stat *status, struct buf *out, struct error *err)
{
	size_t hint = (size_t)status->st_size;
	for (;;) {
		size_t more = hint > out->len ? hint - out->len : READ_MORE;
		more = more < out->max - out->len ? more : out->max - out->len;
		/* A byte over the maximum has to be seen; it needs no place in the buffer. */
		char extra;
		char *at = more > 0 ? buf_reserve(out, more, err) : &extra;
		if (!at) {
			return false;
		}
		ssize_t count = read(fd, at, more > 0 ? more : 1);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			int errnum = errno;
			return error_set_errno(err, errnum, "reading %s", path);
		}
		if (count == 0) {
			return true;
		}
		if (more == 0) {
			return error_set(err, ERROR_LIMIT,
				"%s: it has more than the allowed %zu bytes", path, out->max);
		}
		buf_commit(out, (size_t)count);
	}
}

static bool read_found(
	const struct confined *found, const char *path, struct buf *out, struct error *err)
{
	if (!check_regular(path, &found->status, err) ||
		!check_size(path, &found->status, out->max, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = confined_open(found, O_RDONLY, err);
	struct stat status;
	if (fd < 0) {
		return false;
	}
	if (fstat(fd, &status) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "reading %s", path);
	}
	return check_regular(path, &status, err) && check_size(path, &status, out->max, err) &&
	       read_to_end(fd, path, &status, out, err);
}

bool file_read(const struct confine *confine, const char *path, enum file_links links,
	size_t max_bytes, struct buf *out, struct error *err)
{
	struct error failure = {0};
	for (int i = 0; i < TRIES_MAX; i++) {
		struct confined found;
		if (!confine_walk(confine, path, CONFINE_MUST_EXIST, links, &found, err)) {
			return false;
		}
		buf_init(out, max_bytes);
		bool is_read = read_found(&found, path, out, &failure);
		confined_finish(&found);
		if (is_read) {
			return true;
		}
		buf_finish(out);
		if (failure.code != ERROR_UNAVAILABLE) {
			break;
		}
	}
	*err = failure;
	return false;
}

/* ---- writing ---- */

/* The new content on its way to its name. */
struct draft {
	int fd;
	char name[64]; // its temporary name in the folder; "" while it has none
};

static void make_temporary_name(char *name, size_t size)
{
	static atomic_uint counter;
	snprintf(name, size, ".acp-broker-%d-%u.tmp", (int)getpid(), atomic_fetch_add(&counter, 1));
}

/*
 * A file without a name, so that nothing is left behind by a writer that is
 * killed; where the file system cannot do that, one with a temporary name. Until it has the bits
 * of the one it replaces nobody else may look into it.
 */
static bool draft_open(
	struct draft *draft, const struct confined *found, const char *path, struct error *err)
{
	int folder = found->parent;
	mode_t mode = found->exists ? S_IRUSR | S_IWUSR : NEW_FILE_MODE;
	draft->name[0] = '\0';
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", folder); // O_TMPFILE takes no O_PATH
	draft->fd = open(self, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	for (int i = 0; i < NAMES_MAX && draft->fd < 0; i++) {
		make_temporary_name(draft->name, sizeof(draft->name));
		draft->fd = openat(folder, draft->name,
			O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode);
		if (draft->fd < 0 && errno != EEXIST) {
			break;
		}
	}
	if (draft->fd < 0) {
		int errnum = errno;
		draft->name[0] = '\0';
		return error_set_errno(err, errnum, "writing %s: making a temporary file", path);
	}
	return true;
}

/* What the file that is there is besides its content; one that has just gone had permissions. */
static bool draft_keep(const struct draft *draft, const struct confined *found, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int old = beneath_open(found->parent, found->name, O_PATH | O_NOFOLLOW);
	return file_keep(old, &found->status, draft->fd, err);
}

static bool draft_fill(const struct draft *draft, const struct confined *found, const char *path,
	struct span content, struct error *err)
{
	if (!fd_write_all(draft->fd, content, err) ||
		(found->exists && !draft_keep(draft, found, err))) {
		return error_prefix(err, "writing %s", path);
	}
	if (fsync(draft->fd) != 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "writing %s", path);
	}
	return true;
}

/* Gives a nameless draft a name: the final one where that is free, else a temporary one. */
static bool draft_link(struct draft *draft, int folder, const char *name, bool *out_is_done)
{
	char self[64];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", draft->fd);
	if (*name && linkat(AT_FDCWD, self, folder, name, AT_SYMLINK_FOLLOW) == 0) {
		*out_is_done = true;
		return true;
	}
	for (int i = 0; i < NAMES_MAX; i++) {
		make_temporary_name(draft->name, sizeof(draft->name));
		if (linkat(AT_FDCWD, self, folder, draft->name, AT_SYMLINK_FOLLOW) == 0) {
			return true;
		}
		if (errno != EEXIST) {
			break;
		}
	}
	draft->name[0] = '\0';
	return false;
}

static bool draft_publish(
	struct draft *draft, const struct confined *found, const char *path, struct error *err)
{
	bool is_done = false;
	const char *free_name = found->exists ? "" : found->name;
	bool is_named = draft->name[0] || draft_link(draft, found->parent, free_name, &is_done);
	if (is_done) {
		return true;
	}
	if (is_named && renameat(found->parent, draft->name, found->parent, found->name) == 0) {
		draft->name[0] = '\0';
		return true;
	}
	int errnum = errno;
	return error_set_errno(err, errnum, "writing %s: putting it in its place", path);
}

static void draft_finish(struct draft *draft, int folder)
{
	if (draft->name[0]) {
		unlinkat(folder, draft->name, 0);
	}
	fd_close(&draft->fd);
}

static bool check_writable(const struct confined *found, const char *path, struct error *err)
{
	if (!*found->name) {
		return confine_refuse(err, path, "it is a directory");
	}
	if (!found->exists) {
		return true;
	}
	if (!check_regular(path, &found->status, err)) {
		return false;
	}
	/* Replacing needs no permission on the file; who took it away meant it all the same. */
	if (faccessat(found->parent, found->name, W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0 &&
		errno == EACCES) {
		return error_set_errno(err, EACCES, "writing %s", path);
	}
	return true;
}

static bool write_found(
	const struct confined *found, const char *path, struct span content, struct error *err)
{
	struct draft draft;
	if (!check_writable(found, path, err) || !draft_open(&draft, found, path, err)) {
		return false;
	}
	bool is_written = draft_fill(&draft, found, path, content, err) &&
	                  draft_publish(&draft, found, path, err);
	draft_finish(&draft, found->parent);
	return is_written && (file_sync_folder(found->parent, err) ||
				     error_prefix(err, "%s was written, but", path));
}

bool file_write(const struct confine *confine, const char *path, enum file_links links,
	struct span content, struct error *err)
{
	struct confined found;
	if (!confine_walk(confine, path, CONFINE_MAKE_PARENTS, links, &found, err)) {
		return false;
	}
	bool is_written = write_found(&found, path, content, err);
	confined_finish(&found);
	return is_written;
}
