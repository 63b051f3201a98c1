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
#include "base/real_path.h"
#include "providers/local/cell/kernel.h"
#include "providers/local/cell/mounts.h"

enum {
	CONTENT_MAX = 16 * 1024, // largest file whose content is compared
	ROUNDS_MAX = 4,          // of one pins_renew: more events may come while it works
	READS_MAX = 8,           // per round: an agent can make events faster than we read them
	PATIENCE_MS = 1000,      // between two looks at pins that cannot be watched
};

static const struct kernel_change read_only = {
	.set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .is_deep = true};
static const struct kernel_change writable = {
	.set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .clear = MOUNT_ATTR_RDONLY, .is_deep = true};

static const uint32_t watched =
	IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW;

struct pin {
	char *path;     // owned; absolute, on this machine
	int top_fd;     // the shown folder's mount in the cell, even if the agent moved it
	size_t top_len; // length of the shown folder's path, with which `path` begins
	bool is_writable;
	bool is_missing; // the file was missing at the last look
	/*
	 * The file at its place was deleted while we pinned it: until then nobody is told that the
	 * pin is lost. 0: it was not.
	 */
	long long late_ms;
	bool is_told;  // that it could not be pinned was reported
	char *content; // owned; content of a file when it was pinned; or NULL
	size_t content_len;
};

/* A folder that is shown, writable. */
struct shown {
	char *path; // owned
	int top_fd; // its mount in the cell
};

struct pins {
	int root_fd;
	int watch_fd;
	bool is_unwatched;   // a folder that contains a pin could not be watched
	long long look_ms;   // when to look without an event, if this is set or a pin is late
	struct shown *shown; // owned
	size_t shown_count;
	struct pin *pins; // owned; outer folders come before their content
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

static bool must_look(const struct pins *pins)
{
	bool must = pins->is_unwatched;
	for (size_t i = 0; i < pins->count; i++) {
		must = must || pins->pins[i].late_ms != 0;
	}
	return must;
}

int pins_patience_ms(const struct pins *pins)
{
	long long left_ms = pins->look_ms - clock_now_ms();
	return !must_look(pins) ? -1 : left_ms > 0 ? (int)left_ms : 0;
}

/* ---- one pin ---- */

/* Reads a regular file of at most CONTENT_MAX bytes; NULL for any other file. */
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

/* Makes a mount of the file at this path on this machine. -1 if there is none. */
static int copy_pinned(const struct pin *pin, struct error *err)
{
	int fd = kernel_copy_mounts(AT_FDCWD, pin->path, err);
	if (fd >= 0 && !kernel_change(fd, pin->is_writable ? &writable : &read_only, err)) {
		fd_close(&fd);
		errno = EPERM;
	}
	return fd;
}

/*
 * Opens the pin's place in the cell; -1 with errno. Resolves the path from the shown folder's mount
 * and not from the root: if the folders above are in the cell's own memory, as in the home, the
 * agent can move them, and the mount moves along.
 */
static int open_inside(const struct pin *pin)
{
	return kernel_open_in(pin->top_fd, pin->path + pin->top_len, O_PATH | O_NOFOLLOW, false);
}

/* ---- showing ---- */

/*
 * Mounts on this machine's tree in the outer namespace, which no process in the cell sees: there a
 * folder gets its pins, and then it is copied with them. This is necessary because before Linux
 * 6.15 nothing can be mounted on a detached mount. The working folder is this machine's root.
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

/* Watches the folder that contains a pin. A new folder of the same name gets a new watch. */
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

static bool watch_one(struct pins *pins, const struct pin *pin, struct error *err)
{
	if (pins->watch_fd < 0) {
		pins->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	}
	if (pins->watch_fd < 0 || !watch_above(pins, pin)) {
		int errnum = errno;
		return error_set_errno(err, errnum,
			"watching the pinned file %s (inotify; fs.inotify.max_user_watches and "
			"max_user_instances limit it)",
			pin->path);
	}
	return true;
}

static bool watch(struct pins *pins, const struct pin *added, size_t count, struct error *err)
{
	bool is_watched = true;
	for (size_t i = 1; i < count && is_watched; i++) {
		is_watched = watch_one(pins, &added[i], err);
	}
	return is_watched;
}

/* ---- showing again ---- */

static const struct shown *find_shown(const struct pins *pins, const struct cell_plan *list)
{
	const struct shown *found = NULL;
	for (size_t i = 0; i < pins->shown_count; i++) {
		const struct shown *shown = &pins->shown[i];
		bool is_it = list->entry_count > 0 && list->entries[0].rule == CELL_WRITE &&
		             strcmp(shown->path, list->entries[0].path) == 0;
		found = is_it ? shown : found;
	}
	return found && mounts_has(pins->root_fd, found->path) ? found : NULL;
}

static bool has_pin(const struct pins *pins, const struct cell_entry *entry)
{
	for (size_t i = 0; i < pins->count; i++) {
		if (strcmp(pins->pins[i].path, entry->path) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * Watches first: if somebody moves the file away meanwhile, pins_renew pins the file that takes its
 * place.
 */
static bool pin_late(struct pins *pins, const struct shown *shown, const struct cell_entry *entry,
	struct error *err)
{
	struct pin pin = {.path = mem_strdup(entry->path),
		.top_fd = shown->top_fd,
		.top_len = strlen(shown->path),
		.is_writable = entry->rule == CELL_WRITE};
	bool is_pinned = watch_one(pins, &pin, err);
	ATTR_CLEANUP(fd_cleanup) int place = is_pinned ? open_inside(&pin) : -1;
	ATTR_CLEANUP(fd_cleanup) int fd = place >= 0 ? copy_pinned(&pin, err) : -1;
	pin.is_missing = fd < 0;
	is_pinned = is_pinned && (fd >= 0 ? kernel_attach(fd, place, err)
					  : errno == ENOENT || errno == ENOTDIR || errno == ELOOP);
	if (!is_pinned) {
		finish(&pin, 1);
		return error_set(err, ERROR_SYSTEM, "pinning %s in the cell", entry->path);
	}
	keep_content(&pin);
	keep(pins, &pin, 1);
	return true;
}

/* Pins files that have appeared since the folder was shown. */
static bool pin_more(struct pins *pins, const struct shown *shown, const struct cell_plan *list,
	struct error *err)
{
	bool are_pinned = true;
	for (size_t i = 1; i < list->entry_count && are_pinned; i++) {
		are_pinned = has_pin(pins, &list->entries[i]) ||
		             pin_late(pins, shown, &list->entries[i], err);
	}
	return are_pinned;
}

static void remember(struct pins *pins, const char *path, int top_fd)
{
	size_t size = (pins->shown_count + 1) * sizeof(*pins->shown);
	pins->shown = mem_realloc(pins->shown, size);
	pins->shown[pins->shown_count++] =
		(struct shown){.path = mem_strdup(path), .top_fd = top_fd};
}

bool pins_show(struct pins *pins, const struct cell_plan *list, struct error *err)
{
	size_t count = list->entry_count;
	const struct shown *shown = find_shown(pins, list);
	if (shown) {
		return pin_more(pins, shown, list, err);
	}
	struct pin *added = mem_alloc_zero((count + 1) * sizeof(*added));
	for (size_t i = 0; i < count; i++) {
		added[i].path = mem_strdup(list->entries[i].path);
		added[i].is_writable = list->entries[i].rule == CELL_WRITE;
	}
	bool is_staged = count > 0 && stage(&added[0], false, err);
	bool is_whole = is_staged && (count == 1 || watch(pins, added, count, err)) &&
	                stage_all(added + 1, count - 1, err);
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
		if (added[0].is_writable) {
			remember(pins, added[0].path, top_fd);
		} else {
			fd_close(&top_fd);
		}
		free(added[0].path);
		keep(pins, added + 1, count - 1);
	} else {
		finish(added, count);
	}
	free(added);
	return is_shown;
}

/* ---- renewing ---- */

static void tell_made(const struct pin *pin, void (*tell)(const char *text))
{
	char text[ERROR_TEXT_MAX];
	char *path = path_quote(span_of(pin->path));
	text_format(text, sizeof(text),
		"%s was gone and exists again. The agent may have made it: look at it before a "
		"tool uses it. From now on the agent cannot change it",
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
		"and a file that it opened stays writable for it; otherwise it is read-only again. "
		"Now %s",
		path,
		is_same     ? "its content is the same as before"
		: is_folder ? "look at its content before a tool uses it"
			    : "its content has changed: look at it before a tool uses it");
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

/*
 * While a file takes the place of another (rename), the kernel takes the mount off first. Until it
 * has finished, the path leads to the deleted file, where nothing can be mounted.
 */
static bool is_deleted(int fd)
{
	struct stat status;
	return fstat(fd, &status) == 0 && status.st_nlink == 0;
}

static void renew_pin(struct pin *pin, void (*tell)(const char *text))
{
	struct error err;
	long long now_ms = clock_now_ms();
	long long late_ms = pin->late_ms;
	ATTR_CLEANUP(fd_cleanup) int place = open_inside(pin);
	pin->late_ms = 0;
	if (place < 0) {
		pin->is_missing = true;
		return;
	}
	if (libc_is_mount_root(place)) {
		pin->is_missing = false;
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
	} else if (fd >= 0 && !pin->is_told && (late_ms == 0 || now_ms < late_ms) &&
		   is_deleted(place)) {
		pin->late_ms = late_ms != 0 ? late_ms : now_ms + PATIENCE_MS;
	} else if (fd >= 0 || errno != ENOENT) {
		if (!pin->is_told && !pin->is_writable) {
			tell_lost(pin, &err, tell);
		}
		pin->is_told = true;
	}
}

/*
 * Whether an event may concern a pin. After a name was removed, a new file with this name may exist
 * by now. If the pin is still in place, renew_pin notices that.
 */
static bool concerns(struct pins *pins, const struct inotify_event *event)
{
	bool is_gone = (event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0;
	bool does_concern = false;
	if (event->len == 0 || (event->mask & (IN_Q_OVERFLOW | IN_IGNORED | IN_UNMOUNT))) {
		return true;
	}
	for (size_t i = 0; i < pins->count; i++) {
		if (strcmp(path_last_part(pins->pins[i].path), event->name) == 0) {
			pins->pins[i].is_missing = pins->pins[i].is_missing || is_gone;
			does_concern = true;
		}
	}
	return does_concern;
}

static bool read_events(struct pins *pins)
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
			does_concern = concerns(pins, event) || does_concern;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
	return does_concern;
}

static void tell_unwatched(int errnum, void (*tell)(const char *text))
{
	char text[ERROR_TEXT_MAX];
	const char *why = libc_error_text(errnum);
	text_format(text, sizeof(text),
		"a folder with protected files cannot be watched (inotify: %s; "
		"fs.inotify.max_user_watches limits it, and the agent may have used the watches "
		"up). The broker looks every %d ms instead. If such a file is replaced outside of "
		"the confinement, the agent may write it until then, or until the session ends",
		why ? why : "unknown error", PATIENCE_MS);
	tell(text);
}

static void watch_again(struct pins *pins, void (*tell)(const char *text))
{
	bool was_unwatched = pins->is_unwatched;
	pins->is_unwatched = false;
	for (size_t i = 0; i < pins->count; i++) {
		if (!watch_above(pins, &pins->pins[i])) {
			int errnum = errno;
			if (!was_unwatched && !pins->is_unwatched) {
				tell_unwatched(errnum, tell);
			}
			pins->is_unwatched = true;
		}
	}
}

/*
 * Outer folders come first, so that pins inside them are found. Each folder is watched before it is
 * read, so later changes make an event.
 */
void pins_renew(struct pins *pins, void (*tell)(const char *text))
{
	bool looks = must_look(pins);
	for (int round = 0; round < ROUNDS_MAX && (read_events(pins) || looks); round++) {
		looks = false;
		watch_again(pins, tell);
		for (size_t i = 0; i < pins->count; i++) {
			renew_pin(&pins->pins[i], tell);
		}
	}
	pins->look_ms = clock_now_ms() + PATIENCE_MS;
}
