/* SPDX-License-Identifier: MIT */
#include "broker/ledger/turn_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/lock_file.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"

enum { LOOK_NS = 50 * 1000 * 1000 };

static const char lasting_line[] = "lasting\n";
static const char ending_line[] = "ending\n";

static int open_file(int folder_fd, const char *folder, const char *id)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s%s" TURN_LOCK_ENDING, folder, id);
	return lock_file_open(folder_fd, path);
}

/* ---- for the broker that has the record ---- */

void turn_lock_init(struct turn_lock *lock)
{
	*lock = (struct turn_lock){.fd = -1};
}

void turn_lock_finish(struct turn_lock *lock)
{
	fd_close(&lock->fd);
	lock->is_held = false;
}

static bool take(
	struct turn_lock *lock, const char *state_folder, const char *id, struct error *err)
{
	char folder[PATH_MAX];
	if (!text_whole(folder, sizeof(folder), "%s/sessions/", state_folder)) {
		return error_set_errno(err, ENAMETOOLONG, "locking %s", state_folder);
	}
	if (lock->fd < 0) {
		lock->fd = open_file(AT_FDCWD, folder, id);
	}
	enum lock_state state = lock->fd < 0 ? LOCK_FAILED : lock_file_try(lock->fd, LOCK_ALONE);
	if (state != LOCK_TAKEN) {
		int errnum = errno;
		return state == LOCK_ELSEWHERE
		               ? error_set_reason(err, ERROR_UNAVAILABLE, "ROLLBACK_IN_PROGRESS",
					 "the workspace is being rolled back to a checkpoint "
					 "(acp-broker checkpoints); prompt again when that is done")
		               : error_set_errno(
					 err, errnum, "locking %s%s" TURN_LOCK_ENDING, folder, id);
	}
	lock->is_held = true;
	return true;
}

bool turn_lock_take(struct turn_lock *lock, const char *state_folder, const char *record_id,
	const struct turn_text *text, struct error *err)
{
	if (!lock->is_held && !take(lock, state_folder, record_id, err)) {
		return false;
	}
	char note[TURN_TEXT_MAX + sizeof(lasting_line)];
	int len = snprintf(note, sizeof(note), "%s%s",
		text->is_lasting ? lasting_line : ending_line, text->list);
	len = len < (int)sizeof(note) ? len : (int)sizeof(note) - 1;
	/* The content only tells the user what runs; the lock decides. */
	(void)!ftruncate(lock->fd, 0);
	(void)!pwrite(lock->fd, note, (size_t)len, 0);
	return true;
}

void turn_lock_let_go(struct turn_lock *lock)
{
	if (lock->is_held) {
		(void)!ftruncate(lock->fd, 0); // no work in progress
		lock_file_release(lock->fd);
		/* Programs that watch the folder see changes of files, not of locks. */
		(void)!futimens(lock->fd, NULL);
		lock->is_held = false;
	}
}

/* ---- for programs that look ---- */

enum turn_state turn_lock_look(
	int folder_fd, const char *id, const struct record_owner *owner, char text[TURN_TEXT_MAX])
{
	char name[RECORD_ID_SIZE + sizeof(TURN_LOCK_ENDING)];
	char note[TURN_TEXT_MAX + sizeof(lasting_line)];
	text[0] = '\0';
	text_whole(name, sizeof(name), "%s" TURN_LOCK_ENDING, id);
	if (owner->pid == 0) {
		return TURN_UNKNOWN;
	}
	if (!record_owner_holds(owner, folder_fd, name)) {
		return TURN_IDLE;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : pread(fd, note, sizeof(note) - 1, 0);
	note[len > 0 ? len : 0] = '\0';
	const char *line_end = strchr(note, '\n');
	text_format(text, TURN_TEXT_MAX, "%s", line_end ? line_end + 1 : "a prompt");
	return TURN_OPEN;
}

/* ---- for a rollback ---- */

struct attempt {
	const struct turn_search *search;
	struct turn_locks *locks;
	int folder_fd;
	bool is_busy;
	bool is_lasting;
	struct error *err; // is_busy: the work in progress; otherwise why it is unknown
};

static void note_busy(struct attempt *attempt, const struct record *record,
	const struct record_owner *owner, int fd)
{
	char note[TURN_TEXT_MAX + sizeof(lasting_line)];
	char who[32] = "";
	ssize_t len = pread(fd, note, sizeof(note) - 1, 0);
	note[len > 0 ? len : 0] = '\0';
	const char *line_end = strchr(note, '\n');
	/* Agents choose the ids of their sessions, so they are quoted. */
	char *list = path_quote(span_of(line_end ? line_end + 1 : "a prompt"));
	bool is_ending = strncmp(note, ending_line, strlen(ending_line)) == 0;
	if (owner->pid != 0) {
		snprintf(who, sizeof(who), ", process %d", (int)owner->pid);
	}
	attempt->is_busy = true;
	attempt->is_lasting = attempt->is_lasting || !is_ending;
	error_set_reason(attempt->err, ERROR_UNAVAILABLE, "TOOLS_IN_FLIGHT",
		"in flight: %s (TOOLS_IN_FLIGHT; profile %s%s); nothing was changed: cancel it, or "
		"wait until it ends",
		list, record->profile, who);
	free(list);
}

static void add(struct turn_locks *locks, int fd)
{
	locks->fds = mem_realloc(locks->fds, (locks->count + 1) * sizeof(*locks->fds));
	locks->fds[locks->count++] = fd;
}

static void lock_record(
	struct attempt *attempt, const struct record *record, const struct record_owner *owner)
{
	int fd = open_file(attempt->folder_fd, "", record->id);
	enum lock_state state = fd < 0 ? LOCK_FAILED : lock_file_try(fd, LOCK_ALONE);
	if (state == LOCK_TAKEN) {
		add(attempt->locks, fd);
		return;
	}
	if (state == LOCK_ELSEWHERE) {
		note_busy(attempt, record, owner, fd);
	} else {
		attempt->is_busy = attempt->is_lasting = true;
		error_set_errno(attempt->err, errno, "locking %s" TURN_LOCK_ENDING, record->id);
	}
	fd_close(&fd);
}

static bool is_meant(const struct turn_search *search, const struct record *record)
{
	return strcmp(record->local_root, search->root) == 0 ||
	       (search->real_root && strcmp(record->local_root, search->real_root) == 0);
}

/* A dead broker has no work in progress. */
static void look_at(void *data, const char *id)
{
	struct attempt *attempt = data;
	struct record record;
	struct error ignored; // commands that list records report unreadable ones
	if (attempt->is_lasting || !record_load(attempt->folder_fd, id, &record, &ignored)) {
		return;
	}
	if (is_meant(attempt->search, &record)) {
		struct record_owner owner;
		record_owner_find(attempt->folder_fd, id, &owner);
		if (owner.is_held) {
			lock_record(attempt, &record, &owner);
		}
		record_owner_finish(&owner);
	}
	record_finish(&record);
}

/* Without a folder of records there are no brokers. */
static int open_folder(const char *state_folder)
{
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/sessions", state_folder);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

bool turn_locks_take(struct turn_locks *locks, const struct turn_search *search, struct error *err)
{
	static const struct timespec look = {.tv_nsec = LOOK_NS};
	long long deadline_ms = clock_now_ms() + search->timeout_ms;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(search->state_folder);
	*locks = (struct turn_locks){0};
	for (;;) {
		struct attempt attempt = {
			.search = search, .locks = locks, .folder_fd = folder_fd, .err = err};
		bool ok = folder_fd < 0 || record_visit(folder_fd, look_at, &attempt, err);
		if (ok && !attempt.is_busy) {
			return true;
		}
		turn_locks_finish(locks);
		bool is_over = clock_now_ms() >= deadline_ms ||
		               (search->is_cancelled && *search->is_cancelled);
		if (!ok || attempt.is_lasting || is_over) {
			return false;
		}
		nanosleep(&look, NULL);
	}
}

void turn_locks_finish(struct turn_locks *locks)
{
	for (size_t i = 0; i < locks->count; i++) {
		fd_close(&locks->fds[i]);
	}
	free(locks->fds);
	*locks = (struct turn_locks){0};
}
