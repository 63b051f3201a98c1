/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/cli/status.h"
#include "broker/ledger/plain_record.h"

enum {
	SETTLE_MS =
		100, // from a change in the folder to reading it, because changes come in groups
	INTERVAL_MS = 5000, // reads without a change, for what causes no event
	ALONE_MS = 1000,    // the same if the folder cannot be watched
	SHOWN_MAX = 1 << 20,
	PATH_SIZE = 64,
};

/* The last printed state of a running broker's session. */
struct shown {
	char id[RECORD_ID_SIZE];
	char *text; // owned, JSON
	bool is_seen;
};

struct watch {
	int folder_fd;
	const char *state_folder;
	int inotify_fd; // -1: none
	bool is_json;
	bool is_first; // the first read of the folder
	struct shown *shown;
	size_t count;
};

static void watch_finish(struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++) {
		free(watch->shown[i].text);
	}
	free(watch->shown);
	fd_close(&watch->inotify_fd);
}

/* Records are renamed into place; locks and turns are written in place. */
static bool watch_folder(const struct watch *watch, int folder_fd)
{
	char path[PATH_SIZE];
	text_whole(path, sizeof(path), "/proc/self/fd/%d", folder_fd);
	return inotify_add_watch(watch->inotify_fd, path,
		       IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_DELETE | IN_ATTRIB) >= 0;
}

static void watch_folders(struct watch *watch)
{
	struct error ignored; // then it reads the folder once a second
	watch->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ATTR_CLEANUP(fd_cleanup) int plain_fd = plain_folder_open(watch->state_folder, &ignored);
	if (watch->inotify_fd >= 0 && (plain_fd < 0 || !watch_folder(watch, watch->folder_fd) ||
					      !watch_folder(watch, plain_fd))) {
		fd_close(&watch->inotify_fd);
	}
}

/* ---- what is printed ---- */

static char *as_json(const struct status_view *view)
{
	struct buf out;
	struct json_writer writer;
	struct error ignored;
	buf_init(&out, SHOWN_MAX * 4);
	json_write_begin(&writer, &out);
	status_write(&writer, view);
	bool ok = json_write_end(&writer, &ignored); // a record has at most RECORD_FILE_MAX bytes
	char *text = ok ? mem_strndup(buf_span(&out)) : mem_strdup("null");
	buf_finish(&out);
	return text;
}

/* `text` is the session as JSON. The view is for people; it may be NULL for `ended`. */
static void tell(const struct watch *watch, const char *change, const char *id, const char *text,
	const struct status_view *view)
{
	char now[TIMESTAMP_SIZE];
	timestamp_now(now);
	if (watch->is_json) {
		printf("{\"time\":\"%s\",\"change\":\"%s\",\"session\":%s}\n", now, change, text);
		return;
	}
	printf("%.19s  %-7s  ", now, change);
	if (view) {
		status_print(view);
	} else {
		printf("%-8s %s  removed", "-", id);
	}
	putchar('\n');
}

static struct shown *shown_of(struct watch *watch, const char *id)
{
	for (size_t i = 0; i < watch->count; i++) {
		if (strcmp(watch->shown[i].id, id) == 0) {
			return &watch->shown[i];
		}
	}
	return NULL;
}

static void note(struct watch *watch, const struct status_view *view)
{
	const char *id = view->entry->id;
	struct shown *shown = shown_of(watch, id);
	char *text = as_json(view);
	if (!shown) {
		tell(watch, watch->is_first ? "present" : "began", id, text, view);
		watch->shown =
			mem_realloc(watch->shown, (watch->count + 1) * sizeof(*watch->shown));
		shown = &watch->shown[watch->count++];
		*shown = (struct shown){.text = NULL};
		memcpy(shown->id, id, RECORD_ID_SIZE);
	} else if (strcmp(shown->text, text) != 0) {
		tell(watch, "changed", id, text, view);
	}
	free(shown->text);
	shown->text = text;
	shown->is_seen = true;
}

/* No process has the session any more; its record now says whether it was finished. */
static void tell_end(
	struct watch *watch, const struct session_entries *entries, const struct shown *shown)
{
	for (size_t i = 0; i < entries->count; i++) {
		if (strcmp(entries->entries[i].id, shown->id) == 0) {
			struct status_view view =
				status_view_of(watch->folder_fd, &entries->entries[i]);
			char *text = as_json(&view);
			tell(watch, "ended", shown->id, text, &view);
			free(text);
			return;
		}
	}
	tell(watch, "ended", shown->id, shown->text, NULL);
}

static void forget_ended(struct watch *watch, const struct session_entries *entries)
{
	size_t kept = 0;
	for (size_t i = 0; i < watch->count; i++) {
		if (watch->shown[i].is_seen) {
			watch->shown[kept++] = watch->shown[i];
			continue;
		}
		tell_end(watch, entries, &watch->shown[i]);
		free(watch->shown[i].text);
	}
	watch->count = kept;
}

static bool look(struct watch *watch, struct error *err)
{
	struct session_entries entries;
	if (!status_load(watch->folder_fd, watch->state_folder, &entries, err)) {
		return false;
	}
	for (size_t i = 0; i < watch->count; i++) {
		watch->shown[i].is_seen = false;
	}
	for (size_t i = 0; i < entries.count; i++) {
		if (entries.entries[i].owner.is_held) {
			struct status_view view =
				status_view_of(watch->folder_fd, &entries.entries[i]);
			note(watch, &view);
		}
	}
	forget_ended(watch, &entries);
	watch->is_first = false;
	sessions_finish(&entries);
	return true;
}

/* ---- waiting for changes ---- */

static void drain(int inotify_fd)
{
	char events[4096];
	while (read(inotify_fd, events, sizeof(events)) > 0) {
	}
}

/* False: nobody reads stdout any more. */
static bool wait_change(const struct watch *watch)
{
	static const struct timespec settle = {.tv_nsec = SETTLE_MS * 1000000L};
	bool has_watch = watch->inotify_fd >= 0;
	struct pollfd fds[2] = {{.fd = STDOUT_FILENO}, // only errors
		{.fd = watch->inotify_fd, .events = POLLIN}};
	if (poll(fds, 2, has_watch ? INTERVAL_MS : ALONE_MS) > 0 && fds[0].revents != 0) {
		return false;
	}
	if (has_watch && fds[1].revents != 0) {
		nanosleep(&settle, NULL);
		drain(watch->inotify_fd);
	}
	return true;
}

bool status_watch(int folder_fd, const char *state_folder, bool is_json, struct error *err)
{
	struct watch watch = {.folder_fd = folder_fd,
		.state_folder = state_folder,
		.is_json = is_json,
		.is_first = true};
	bool ok = true;
	signal(SIGPIPE, SIG_IGN); // a reader that leaves ends the command without failure
	watch_folders(&watch);    // before the first read, so that no change is missed
	while ((ok = look(&watch, err))) {
		errno = 0;
		if (fflush(stdout) != 0 || ferror(stdout)) {
			int errnum = errno;
			ok = errnum == EPIPE ||
			     error_set_errno(err, errnum ? errnum : EIO, "writing to stdout");
			break;
		}
		if (!wait_change(&watch)) {
			break;
		}
	}
	watch_finish(&watch);
	return ok;
}
