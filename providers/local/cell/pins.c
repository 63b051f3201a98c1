/* SPDX-License-Identifier: MIT */
#include "providers/local/cell/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/libc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "base/real_path.h"
#include "providers/local/cell/kernel.h"
#include "providers/local/cell/mounts.h"

enum {
	CONTENT_MAX = 16 * 1024, // of a file that is compared
	ROUNDS_MAX = 4,          // of one pins_renew: watches may come after what they watch
	READS_MAX = 8,           // of one round: an agent can make events faster than we read them
};

static const struct kernel_change read_only = {
	.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .is_deep = true};
static const struct kernel_change writable = {
	.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .clear = MOUNT_ATTR_RDONLY, .is_deep = true};

static const uint32_t watched =
	IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;

struct pin {
	char *path;     // owned; absolute, on this machine
	int top_fd;     // of the shown folder's mount in the cell, wherever the agent has moved it
	size_t top_len; // of the folder's path, which `path` begins with
	bool is_writable;
	bool is_missing; // nothing was there when it was looked at last
	bool is_told;    // that it is gone
	char *content;   // owned; of a file, as it was when it was pinned; or NULL
	size_t content_len;
};

struct pins {
	int root_fd;
	int watch_fd;
	char **shown;     // owned; the folders
	struct pin *pins; // owned; what contains another one comes before it
	size_t count;
};

struct pins *pins_create(int root_fd)
{
	struct pins *pins = mem_alloc_zero(sizeof(*pins));
	pins->root_fd = root_fd;
	pins->watch_fd = -1;
	return pins;
}

int pins_fd(const struct pins *pins)
{
	return pins->watch_fd;
}

/* ---- one pin ---- */

/* A regular file's, up to CONTENT_MAX; NULL: it is something else, or more. */
static char *read_content(const char *path, size_t *out_len)
{
	struct stat status;
	ATTR_CLEANUP(fd_cleanup)
	int fd = kernel_open_in(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, false);
	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
		status.st_size > CONTENT_MAX) {
		return NULL;
	}
	char *content = mem_alloc(CONTENT_MAX + 1);
	size_t len = 0;
	ssize_t count;
	while (len <= CONTENT_MAX && (count = read(fd, content + len, CONTENT_MAX + 1 - len)) > 0) {
		len += (size_t)count;
	}
	*out_len = len;
	return mem_realloc(content, len + 1);
}

static bool keep_content(struct pin *pin)
{
	size_t len = 0;
	char *content = pin->is_writable ? NULL : read_content(pin->path, &len);
	bool is_same = content && pin->content && len == pin->content_len &&
	               memcmp(content, pin->content, len) == 0;
	free(pin->content);
	pin->content = content;
	pin->content_len = len;
	return is_same;
}

/* A mount of what is at the path on this machine, made for its place; -1 where nothing is. */
static int copy_pinned(const struct pin *pin, struct error *err)
{
	int fd = kernel_copy_mounts(AT_FDCWD, pin->path, err);
	if (fd >= 0 && !kernel_change(fd, pin->is_writable ? &writable : &read_only, err)) {
		fd_close(&fd);
		errno = EPERM;
	}
	return fd;
}

/* ---- showing ---- */

/*
 * What is mounted on this machine's tree in the outer namespace nobody sees: there a folder gets
 * its pins, and is copied with them. A mount that is not attached takes none before Linux 6.15.
 * The working folder is this machine's root.
 */
static bool stage(struct pin *pin, bool may_lack, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int fd = copy_pinned(pin, err);
	pin->is_missing = fd < 0;
	if (fd < 0) {
		return may_lack && errno == ENOENT;
	}
	ATTR_CLEANUP(fd_cleanup) int place = kernel_open_in(AT_FDCWD, pin->path, O_PATH, false);
	return (place >= 0 && kernel_attach(fd, place, err)) ||
	       error_set(err, ERROR_SYSTEM, "pinning %s in the cell", pin->path);
}

static bool stage_all(struct pin *pins, size_t count, struct error *err)
{
	bool is_staged = true;
	for (size_t i = 0; i < count && is_staged; i++) {
		is_staged = stage(&pins[i], true, err);
	}
	return is_staged;
}

/* Returns the mount's root, or -1. */
static int show_staged(const struct pins *pins, const char *path, struct error *err)
{
	int fd = kernel_copy_mounts(AT_FDCWD, path, err);
	if (fd >= 0 && !mounts_attach(pins->root_fd, fd, path, err)) {
		fd_close(&fd);
	}
	return fd;
}

static void keep(struct pins *pins, struct pin *added, size_t count)
{
	pins->pins = mem_realloc(pins->pins, (pins->count + count) * sizeof(*pins->pins));
	memcpy(pins->pins + pins->count, added, count * sizeof(*added));
	pins->count += count;
}

static void finish(struct pin *pins, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pins[i].path);
		free(pins[i].content);
	}
}

/* ---- watching ---- */

/* The folder that holds a pin; a new one of the same name gets a watch of its own. */
static bool watch_above(const struct pins *pins, const struct pin *pin)
{
	char folder[PATH_MAX], name[64];
	text_whole(folder, sizeof(folder), "%.*s", (int)(path_last_part(pin->path) - 1 - pin->path),
		pin->path);
	ATTR_CLEANUP(fd_cleanup)
	int fd = kernel_open_in(AT_FDCWD, folder[0] ? folder : "/", O_PATH | O_DIRECTORY, false);
	if (fd < 0) {
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
	}
	text_whole(name, sizeof(name), "/proc/self/fd/%d/.", fd);
	return inotify_add_watch(pins->watch_fd, name, watched) >= 0;
}

static bool watch(struct pins *pins, const struct pin *added, size_t count, struct error *err)
{
	if (pins->watch_fd < 0) {
		pins->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	}
	bool is_watched = pins->watch_fd >= 0;
	for (size_t i = 1; i < count && is_watched; i++) {
		is_watched = watch_above(pins, &added[i]);
	}
	if (!is_watched) {
		int errnum = errno;
		return error_set_errno(err, errnum,
			"watching what is pinned in %s (inotify; fs.inotify.max_user_watches and "
			"max_user_instances limit it)",
			added[0].path);
	}
	return true;
}

bool pins_show(struct pins *pins, const struct cell_plan *list, struct error *err)
{
	size_t count = list->entry_count;
	if (count > 0 && list->entries[0].rule == CELL_WRITE &&
		words_contain((const char *const *)pins->shown, list->entries[0].path) &&
		mounts_has(pins->root_fd, list->entries[0].path)) {
		return true;
	}
	struct pin *added = mem_alloc_zero((count + 1) * sizeof(*added));
	for (size_t i = 0; i < count; i++) {
		added[i].path = mem_strdup(list->entries[i].path);
		added[i].is_writable = list->entries[i].rule == CELL_WRITE;
	}
	bool is_staged = count > 0 && stage(&added[0], false, err);
	bool is_whole = is_staged && stage_all(added + 1, count - 1, err) &&
	                (count == 1 || watch(pins, added, count, err));
	int top_fd = is_whole ? show_staged(pins, added[0].path, err) : -1;
	bool is_shown = top_fd >= 0;
	if (is_staged) {
		kernel_take_off(added[0].path);
	}
	if (is_shown) {
		for (size_t i = 1; i < count; i++) {
			keep_content(&added[i]);
			added[i].top_fd = top_fd;
			added[i].top_len = strlen(added[0].path);
		}
		words_append(&pins->shown, added[0].path);
		free(added[0].path);
		keep(pins, added + 1, count - 1);
		if (count == 1) {
			fd_close(&top_fd);
		}
	} else {
		finish(added, count);
	}
	free(added);
	return is_shown;
}

/* ---- renewing ---- */

/*
 * In the cell; -1 with errno. Below the mount, not by the whole path: where the folders above are
 * the cell's own memory, as in the home, the agent can move them, and the mount goes along.
 */
static int open_inside(const struct pin *pin)
{
	return kernel_open_in(pin->top_fd, pin->path + pin->top_len, O_PATH | O_NOFOLLOW, false);
}

static void tell_made(const struct pin *pin, void (*tell)(const char *text))
{
	char text[ERROR_TEXT_MAX];
	char *path = path_quote(span_of(pin->path));
	text_format(text, sizeof(text),
		"%s was gone and is there again. The agent may have made it: look at it before a "
		"tool uses it. The agent cannot change it from now on",
		path);
	tell(text);
	free(path);
}

static void tell_renewed(const struct pin *pin, bool is_same, void (*tell)(const char *text))
{
	char text[ERROR_TEXT_MAX];
	char *path = path_quote(span_of(pin->path));
	struct stat status;
	bool is_folder = lstat(pin->path, &status) == 0 && S_ISDIR(status.st_mode);
	if (pin->is_missing) {
		free(path);
		tell_made(pin, tell);
		return;
	}
	text_format(text, sizeof(text),
		"%s was replaced outside of the confinement. For a moment the agent could open it, "
		"and write it from then on; else it is read-only again. Now %s",
		path,
		is_same     ? "its content is what it was before"
		: is_folder ? "look at what is in it before a tool uses it"
			    : "its content is not what it was before: look at it before a tool "
			      "uses it");
	tell(text);
	free(path);
}

static void tell_lost(const struct pin *pin, const struct error *err, void (*tell)(const char *))
{
	char text[ERROR_TEXT_MAX];
	char *path = path_quote(span_of(pin->path));
	text_format(text, sizeof(text),
		"%s was replaced outside of the confinement, and the agent can write it: %s", path,
		err->text);
	tell(text);
	free(path);
}

static void renew_pin(struct pin *pin, void (*tell)(const char *text))
{
	struct error err;
	ATTR_CLEANUP(fd_cleanup) int place = open_inside(pin);
	if (place < 0) {
		pin->is_missing = true;
		return;
	}
	if (libc_is_mount_root(place)) {
		return;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = copy_pinned(pin, &err);
	if (fd >= 0 && kernel_attach(fd, place, &err)) {
		bool is_same = keep_content(pin);
		if (!pin->is_writable) {
			tell_renewed(pin, is_same, tell);
		}
		pin->is_missing = false;
		pin->is_told = false;
	} else if (fd >= 0 || errno != ENOENT) {
		if (!pin->is_told && !pin->is_writable) {
			tell_lost(pin, &err, tell);
		}
		pin->is_told = true;
	}
}

/* Whether an event may be one of a pin's. */
static bool concerns(const struct pins *pins, const struct inotify_event *event)
{
	if (event->len == 0 || (event->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT))) {
		return true;
	}
	for (size_t i = 0; i < pins->count; i++) {
		if (strcmp(path_last_part(pins->pins[i].path), event->name) == 0) {
			return true;
		}
	}
	return false;
}

static bool read_events(const struct pins *pins)
{
	union {
		struct inotify_event event;
		char bytes[16384];
	} events;
	bool does_concern = false;
	ssize_t count = 1;
	for (int i = 0; i < READS_MAX && count > 0; i++) {
		count = read(pins->watch_fd, events.bytes, sizeof(events.bytes));
		for (ssize_t at = 0; at < count;) {
			const struct inotify_event *event =
				(const struct inotify_event *)(const void *)(events.bytes + at);
			does_concern = does_concern || concerns(pins, event);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return does_concern;
}

/* What contains others comes first, so that they find it. */
void pins_renew(struct pins *pins, void (*tell)(const char *text))
{
	for (int round = 0; round < ROUNDS_MAX && read_events(pins); round++) {
		for (size_t i = 0; i < pins->count; i++) {
			renew_pin(&pins->pins[i], tell);
		}
		for (size_t i = 0; i < pins->count; i++) {
			(void)watch_above(pins, &pins->pins[i]);
		}
	}
}
