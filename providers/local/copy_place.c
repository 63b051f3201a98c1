/* SPDX-License-Identifier: MIT */
#include "providers/local/copy_place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/lock_file.h"
#include "base/remove_folder.h"
#include "base/text.h"
#include "base/user_repository.h"
#include "providers/local/copy_lock.h"
#include "providers/local/copy_tree.h"

bool copy_put_path(char path[PATH_MAX], struct error *err, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(path, PATH_MAX, format, args);
	va_end(args);
	return length < PATH_MAX || error_set(err, ERROR_CONFIG, "%s: the path is too long", path);
}

/* ---- the folder of a copy ---- */

/* Whether the broker itself uses this name beside the root. */
static bool is_own_name(const char *name)
{
	static const char *const own[] = {"", ".acp-broker", ".made", ".place"};
	for (size_t i = 0; i < ARRAY_LENGTH(own); i++) {
		if (strcmp(name, own[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* "" if the file is missing or damaged. */
static void read_place(const char *path, char text[REPOSITORY_PLACE_MAX])
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, REPOSITORY_PLACE_MAX - 1) : -1;
	text[len > 0 ? len : 0] = '\0';
	if (!user_repository_is_place(text)) {
		text[0] = '\0';
	}
}

/* The root has the workspace's name, because agents show and use it. */
bool copy_place_of(struct copy_place *place, const char *home, const char *real, struct error *err)
{
	char deep[REPOSITORY_PLACE_MAX];
	const char *name = strrchr(real, '/') + 1;
	if (!copy_put_path(place->folder, err, "%s/%016" PRIx64, home,
		    hash_bytes(HASH_START, span_of(real))) ||
		!copy_put_path(place->made, err, "%s/.made", place->folder) ||
		!copy_put_path(place->place, err, "%s/.place", place->folder)) {
		return false;
	}
	read_place(place->place, deep);
	name = deep[0] ? deep : is_own_name(name) ? "root" : name;
	place->top = strlen(place->folder) + 1 + strcspn(name, "/");
	return copy_put_path(place->runtime, err, "%s/%s", place->folder, name);
}

/* Writes the file atomically, and only if there is none: another broker may be writing it, too. */
static bool write_place(const struct copy_place *place, const char *text, struct error *err)
{
	char fresh[PATH_MAX];
	if (!copy_put_path(fresh, err, "%s.XXXXXX", place->place)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = mkostemp(fresh, O_CLOEXEC);
	bool written = fd >= 0 && fd_write_all(fd, span_of(text), NULL) && fsync(fd) == 0 &&
	               (link(fresh, place->place) == 0 || errno == EEXIST);
	int errnum = errno;
	unlink(fresh);
	return written || error_set_errno(err, errnum, "making %s", place->place);
}

/*
 * An agent may put a link here at any moment, so nothing is made or copied through links. The
 * folder above admits nobody else, whatever the umask is.
 */
static bool make_folders(const struct copy_place *place, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int top = open(place->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ATTR_CLEANUP(fd_cleanup)
	int made = beneath_open_folder(top, place->runtime + strlen(place->folder) + 1, true);
	int errnum = errno;
	return made >= 0 || error_set_errno(err, errnum, "making %s", place->runtime);
}

bool copy_place_give(const struct copy_place *place, const struct owner *owner, struct error *err)
{
	char path[PATH_MAX];
	size_t len = strlen(place->folder);
	bool is_given = true;
	while (is_given) {
		text_whole(path, sizeof(path), "%.*s", (int)len, place->runtime);
		ATTR_CLEANUP(fd_cleanup)
		int fd = beneath_open(AT_FDCWD, path, O_PATH | O_DIRECTORY);
		is_given = fd >= 0 && owner_give_one(fd, owner);
		if (!place->runtime[len]) {
			break;
		}
		len += 1 + strcspn(place->runtime + len + 1, "/");
	}
	int errnum = errno;
	return is_given ||
	       error_set_errno(err, errnum, "giving %s to user %u", path, (unsigned)owner->uid);
}

bool copy_place_make(
	struct copy_place *place, const char *home, const char *real, struct error *err)
{
	char deep[REPOSITORY_PLACE_MAX];
	if (!copy_place_of(place, home, real, err)) {
		return false;
	}
	if (access(place->place, F_OK) != 0 && access(place->runtime, F_OK) != 0 &&
		access(place->made, F_OK) != 0) {
		user_repository_place(real, deep);
		if (deep[0] && (!write_place(place, deep, err) ||
				       !copy_place_of(place, home, real, err))) {
			return false;
		}
	}
	return make_folders(place, err);
}

/* Does not follow links and does not wait: a confined agent can put anything here, even a pipe. */
bool copy_mark_made(const struct copy_place *place, const char *real, struct error *err)
{
	const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
	struct stat status;
	if (lstat(place->made, &status) == 0 && !S_ISREG(status.st_mode) &&
		!remove_folder(place->made, err)) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = open(place->made, flags, 0600);
	if (fd < 0) {
		int errnum = errno;
		return error_set_errno(err, errnum, "making %s", place->made);
	}
	return fd_write_all(fd, span_of(real), err);
}

bool copy_check_outside(const char *home, const char *real, struct error *err)
{
	char kept[PATH_MAX];
	size_t length = strcmp(real, "/") == 0 ? 0 : strlen(real);
	if (!realpath(home, kept) || strncmp(kept, real, length) != 0 ||
		(kept[length] != '/' && kept[length] != '\0')) {
		return true;
	}
	return error_set(err, ERROR_DENIED,
		"copying %s: it contains the folder of the copies, %s: open a project's own "
		"directory",
		real, home);
}

/* ---- existing copies ---- */

/* Reads which workspace the copy in this folder belongs to; the folder's own name must match it. */
static bool read_made(int home_fd, const char *home, const char *name, struct copy_place *out_place,
	char real[PATH_MAX])
{
	char path[NAME_MAX + sizeof("/.made")];
	struct error ignored;
	text_whole(path, sizeof(path), "%s/.made", name);
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(home_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, real, PATH_MAX - 1) : -1;
	real[len > 0 ? len : 0] = '\0';
	if (real[0] != '/' || !copy_place_of(out_place, home, real, &ignored)) {
		return false;
	}
	return strcmp(strrchr(out_place->folder, '/') + 1, name) == 0 &&
	       access(out_place->runtime, F_OK) == 0;
}

struct knowing {
	struct sandbox_root *known;
	size_t count;
};

static void know_home(struct knowing *knowing, const char *home)
{
	struct copy_place place;
	char real[PATH_MAX];
	DIR *folder = opendir(home);
	struct dirent *entry;
	while (folder && knowing->count < COPY_KNOWN_MAX && (entry = readdir(folder))) {
		if (entry->d_name[0] != '.' &&
			read_made(dirfd(folder), home, entry->d_name, &place, real)) {
			knowing->known = mem_realloc(
				knowing->known, (knowing->count + 1) * sizeof(*knowing->known));
			knowing->known[knowing->count++] =
				(struct sandbox_root){.local = mem_strdup(real),
					.runtime = mem_strdup(place.runtime),
					.top = place.top};
		}
	}
	if (folder) {
		closedir(folder);
	}
}

struct sandbox_root *copy_known(const struct copy_home *home, size_t *out_count)
{
	struct knowing knowing = {NULL, 0};
	char path[PATH_MAX], copies[PATH_MAX];
	struct error ignored;
	text_whole(copies, sizeof(copies), "%.*s", (int)home->common, home->path);
	char *name = strrchr(copies, '/');
	know_home(&knowing, copies);
	*name++ = '\0';
	size_t length = strlen(name);
	DIR *folder = opendir(copies);
	struct dirent *entry;
	while (folder && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, name, length) == 0 && entry->d_name[length] == '.' &&
			copy_put_path(path, &ignored, "%s/%s", copies, entry->d_name)) {
			know_home(&knowing, path);
		}
	}
	if (folder) {
		closedir(folder);
	}
	*out_count = knowing.count;
	return knowing.known;
}

/* ---- where the agent starts ---- */

static bool make_folder(const char *path)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

int copy_start(const char *home, const char *directory, struct copy_place *out_place)
{
	char real[PATH_MAX];
	struct error ignored;
	if (!realpath(directory, real) || !copy_check_outside(home, real, &ignored) ||
		!copy_place_of(out_place, home, real, &ignored) ||
		!make_folder(out_place->folder) ||
		!copy_place_make(out_place, home, real, &ignored)) {
		return -1; // a session in it will report the failure
	}
	int fd = open(out_place->runtime, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/*
	 * The lock lasts until copy_start_end. A broker with an exclusive lock is about to remove
	 * the folder.
	 */
	if (lock_file_try(fd, LOCK_SHARED) != LOCK_TAKEN ||
		!copy_is_in_place(fd, out_place->runtime)) {
		fd_close(&fd);
	}
	return fd;
}

/*
 * Removes the folder and those above it if they are empty. Another broker may begin to use one at
 * any moment; that one stays.
 */
static bool remove_empty(const struct copy_place *place)
{
	char path[PATH_MAX];
	if (rmdir(place->runtime) != 0) {
		return false;
	}
	memcpy(path, place->runtime, sizeof(path));
	while (strlen(path) > place->top) {
		*strrchr(path, '/') = '\0';
		if (rmdir(path) != 0) {
			return false;
		}
	}
	unlink(place->place);
	return rmdir(place->folder) == 0;
}

void copy_start_end(int fd, const char *home, const struct copy_place *place)
{
	static const atomic_bool is_cancelled;
	ATTR_CLEANUP(fd_cleanup) int lock = -1;
	struct error ignored;
	if (fd < 0) {
		return;
	}
	bool is_last = lock_file_try(fd, LOCK_ALONE) == LOCK_TAKEN &&
	               copy_lock(place->folder, 1, &is_cancelled, &lock, &ignored) &&
	               access(place->made, F_OK) != 0;
	if (is_last && remove_empty(place)) {
		(void)!rmdir(home); // fails while other folders are in it
	}
	fd_close(&fd);
}

/* ---- the end of a copy ---- */

/*
 * Removes everything in a folder except one name. Works on descriptors and follows no link, because
 * an agent may put one on the path at any moment.
 */
static bool remove_others(const char *folder, const char *kept, struct error *err)
{
	char path[PATH_MAX];
	int fd = beneath_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY);
	DIR *open_folder = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool is_done = true;
	while (is_done && open_folder && (entry = readdir(open_folder))) {
		const char *name = entry->d_name;
		bool is_kept = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		               strcmp(name, kept) == 0;
		is_done = is_kept || (copy_put_path(path, err, "/proc/self/fd/%d/%s", fd, name) &&
					     remove_folder(path, err));
	}
	if (open_folder) {
		closedir(open_folder);
	}
	return is_done;
}

/* Empties the root, and removes everything in the folder that is not on the path to it. */
static bool empty_root(char folder[PATH_MAX], const char *runtime, struct error *err)
{
	char name[NAME_MAX + 1];
	bool is_done = true;
	while (is_done && strcmp(folder, runtime) != 0) {
		size_t length = strlen(folder);
		const char *next = runtime + length + 1;
		size_t size = strcspn(next, "/");
		text_whole(name, sizeof(name), "%.*s", (int)size, next);
		is_done = remove_others(folder, name, err);
		text_whole(folder, PATH_MAX, "%.*s", (int)(length + 1 + size), runtime);
	}
	return is_done && remove_others(runtime, "", err);
}

bool copy_place_remove(const struct sandbox_root *root, int held, struct error *err)
{
	char folder[PATH_MAX];
	const char *runtime = root->runtime;
	text_whole(folder, sizeof(folder), "%.*s", (int)root->top, runtime);
	*strrchr(folder, '/') = '\0';
	ATTR_CLEANUP(fd_cleanup)
	int fd = held >= 0 ? fcntl(held, F_DUPFD_CLOEXEC, 0)
	                   : open(runtime, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && lock_file_try(fd, LOCK_ALONE) == LOCK_ELSEWHERE) {
		return empty_root(folder, runtime, err);
	}
	return remove_folder(folder, err);
}
