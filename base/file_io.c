/* SPDX-License-Identifier: MIT */
#include "base/file_io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
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

bool file_stat_mount(const struct confine *confine, const char *path, struct stat *out,
	bool *out_read_only, struct error *err)
{
	struct confined found;
	struct statvfs mount;
	if (!confine_walk(confine, path, CONFINE_MUST_EXIST, FILE_LINKS_FOLLOWED, &found, err)) {
		return false;
	}
	const char *name = *found.name ? found.name : ".";
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open(found.parent, name, O_PATH | O_NOFOLLOW);
	bool is_known = fd >= 0 && fstat(fd, out) == 0 && fstatvfs(fd, &mount) == 0;
	int errnum = errno;
	confined_finish(&found);
	if (!is_known) {
		return error_set_errno(err, errnum, "%s", path);
	}
	*out_read_only = (mount.f_flag & ST_RDONLY) != 0;
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
			"workspace %s: it is not a directory", path);
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
		S_ISDIR(status->st_mode) ? "it is a directory" : "it is not a regular file");
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

/*
 * Reads to the current end of the file. Its size was only a hint, and is 0 on some file systems.
 * One byte more shows the end, so that the buffer need not grow for that.
 */
static bool read_to_end(
	int fd, const char *path, const struct stat *status, struct buf *out, struct error *err)
{
	size_t hint = status->st_size > 0 ? (size_t)status->st_size + 1 : 0;
	for (;;) {
		size_t more = hint > out->len ? hint - out->len : READ_MORE;
		more = more < out->max - out->len ? more : out->max - out->len;
		/*
		 * One more byte than the maximum shows that the file is too large; it needs no room
		 * in the buffer.
		 */
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

/* ---- reading from the kernel's memory ---- */

/* File systems where open, stat and cached reads wait for no server and no process. */
dev_t file_disk_of(const char *real)
{
	struct statfs system;
	struct stat status;
	ATTR_CLEANUP(fd_cleanup) int fd = beneath_open(AT_FDCWD, real, O_PATH | O_DIRECTORY);
	if (fd < 0 || fstatfs(fd, &system) != 0 || fstat(fd, &status) != 0) {
		return 0;
	}
	switch ((unsigned long)system.f_type & 0xffffffffUL) {
	case EXT4_SUPER_MAGIC: // also ext2 and ext3
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return status.st_dev;
	default:
		return 0;
	}
}

/* The part of a path after the name of a root; NULL if the path is not below the root. */
static const char *below_name(const char *path, const char *root)
{
	size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
	return strncmp(path, root, len) == 0 && path[len] == '/' ? path + len : NULL;
}

/*
 * The root that a walk of the path enters, provided that no earlier name is a link: for a resolved
 * path the longest one, otherwise the first one on the way.
 */
static const struct confine_root *root_of(const struct confine *confine, const char *path,
	enum file_links links, const char **out_rest)
{
	size_t len = 0;
	const struct confine_root *best = NULL;
	if (links == FILE_LINKS_REFUSED) {
		best = confine_find_root(confine, path, &len);
		*out_rest = path + len;
		return best;
	}
	for (size_t i = 0; i < confine->count; i++) {
		const struct confine_root *root = &confine->roots[i];
		const char *below = below_name(path, root->name);
		below = below ? below : below_name(path, root->real);
		if (below && (!best || below < *out_rest)) {
			best = root;
			*out_rest = below;
		}
	}
	return best;
}

static bool has_dots(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/.")); at++) {
		size_t len = strcspn(at + 1, "/");
		if (len == 1 || (len == 2 && at[2] == '.')) {
			return true;
		}
	}
	return false;
}

/*
 * Opens a regular file below a root in one step. The kernel follows no link and leaves neither the
 * root nor its mount, so the result is the same as that of a walk.
 */
static int open_cached(const struct confine_root *root, const char *path)
{
	struct stat status;
	dev_t device;
	ATTR_CLEANUP(fd_cleanup)
	int folder = beneath_open_cached(AT_FDCWD, root->real, O_PATH | O_DIRECTORY);
	if (folder < 0 || !libc_known_device(folder, &device) || device != root->disk) {
		return -1;
	}
	ATTR_CLEANUP(fd_cleanup) int found = beneath_open_cached(folder, path, O_PATH | O_NOFOLLOW);
	if (found < 0 || fstat(found, &status) != 0 || !S_ISREG(status.st_mode)) {
		return -1;
	}
	return beneath_open_cached(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
}

/* Reads to the end of the file. One byte more than its size shows that it has grown. */
static bool read_cached(int fd, size_t max_bytes, struct buf *out)
{
	struct stat status;
	struct error ignored;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0 ||
		status.st_size > FILE_CACHED_MAX || (size_t)status.st_size > max_bytes) {
		return false;
	}
	size_t size = (size_t)status.st_size;
	char *to = buf_reserve(out, size, &ignored);
	ssize_t count = 1;
	while (to && out->len < size && count > 0) {
		count = libc_read_cached(fd, to + out->len, size - out->len);
		buf_commit(out, count > 0 ? (size_t)count : 0);
	}
	char extra;
	return out->len == size && libc_read_cached(fd, &extra, 1) == 0;
}

bool file_read_cached(const struct confine *confine, const char *path, enum file_links links,
	size_t max_bytes, struct buf *out)
{
	const char *rest = NULL;
	if (confine->owner.is_other || path[0] != '/' || strlen(path) >= PATH_MAX ||
		has_dots(path)) {
		return false;
	}
	const struct confine_root *root = root_of(confine, path, links, &rest);
	if (!root || root->disk == 0 || rest[strspn(rest, "/")] == '\0') {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = open_cached(root, rest + strspn(rest, "/"));
	buf_init(out, max_bytes);
	if (fd >= 0 && read_cached(fd, max_bytes, out)) {
		return true;
	}
	buf_finish(out);
	return false;
}

/* ---- writing ---- */

static const char draft_start[] = ".acp-broker-";
static const char draft_end[] = ".tmp";

/* New content that has not got its final name yet. */
struct draft {
	int fd;
	char name[64]; // its temporary name in the folder; "" if it has none
};

static void make_temporary_name(char *name, size_t size)
{
	static atomic_uint counter;
	text_whole(name, size, "%s%d-%u%s", draft_start, (int)getpid(),
		atomic_fetch_add(&counter, 1), draft_end);
}

/* Whether the process that made it has ended. */
static bool is_left_draft(const char *name)
{
	const size_t start = sizeof(draft_start) - 1;
	char *rest;
	if (strncmp(name, draft_start, start) != 0 || name[start] < '1' || name[start] > '9') {
		return false;
	}
	long pid = strtol(name + start, &rest, 10);
	size_t digits = *rest == '-' ? strspn(rest + 1, "0123456789") : 0;
	return digits > 0 && strcmp(rest + 1 + digits, draft_end) == 0 && pid <= INT_MAX &&
	       kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void file_sweep_drafts(int folder)
{
	struct stat status;
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	while (names && (entry = readdir(names)) != NULL) {
		if (is_left_draft(entry->d_name) &&
			fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(status.st_mode)) {
			unlinkat(folder, entry->d_name, 0);
		}
	}
	if (names) {
		closedir(names);
	} else {
		fd_close(&fd);
	}
}

/*
 * Makes a file without a name, so that a writer that is killed leaves nothing behind; if the file
 * system cannot do that, a file with a temporary name. Only the owner may read it until it has the
 * permissions of the file that it replaces.
 */
static bool draft_open(
	struct draft *draft, const struct confined *found, const char *path, struct error *err)
{
	int folder = found->parent;
	mode_t mode = found->exists ? S_IRUSR | S_IWUSR : NEW_FILE_MODE;
	draft->name[0] = '\0';
	char self[64];
	snprintf(
		self, sizeof(self), "/proc/self/fd/%d", folder); // O_TMPFILE does not accept O_PATH
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

/*
 * Copies everything except the content from the existing file. A file that has just been removed
 * still determines the permissions.
 */
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

/* Gives a nameless draft a name: the final one if it is free, otherwise a temporary one. */
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
	return error_set_errno(err, errnum, "writing %s: moving the new file into place", path);
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
	/*
	 * Replacing a file needs no write permission on it. But a user who removed that permission
	 * wants the file protected.
	 */
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
