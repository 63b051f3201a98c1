/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/lock_file.h"
#include "base/point.h"
#include "base/text.h"
#include "broker/ledger/plain_record.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_limit.h"
#include "broker/ledger/record_owner.h"
#include "broker/ledger/turn_lock.h"

enum { NAME_SIZE = RECORD_ID_SIZE + 8 };

static const char json_ending[] = ".json";
static const char lock_ending[] = ".lock";
static const char new_ending[] = ".new";

static void file_name(char name[NAME_SIZE], const char *id, const char *ending)
{
	text_whole(name, NAME_SIZE, "%s%s", id, ending);
}

/* Opens a folder in the state folder; creates it (0700) if missing. */
static int open_folder(const char *state_folder, const char *name, struct error *err)
{
	if (!*state_folder) {
		error_set(err, ERROR_CONFIG,
			"there is no place for session records: set HOME or XDG_STATE_HOME");
		return -1;
	}
	if (!folder_make_state(state_folder, err)) {
		return -1;
	}
	ATTR_CLEANUP(fd_cleanup) int state_fd = open(state_folder, O_DIRECTORY | O_CLOEXEC);
	if (state_fd < 0) {
		error_set_errno(err, errno, "opening %s", state_folder);
		return -1;
	}
	if (mkdirat(state_fd, name, 0700) != 0 && errno != EEXIST) {
		error_set_errno(err, errno, "creating %s/%s", state_folder, name);
		return -1;
	}
	int fd = openat(state_fd, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s/%s", state_folder, name);
	}
	return fd;
}

int record_folder_open(const char *state_folder, struct error *err)
{
	return open_folder(state_folder, "sessions", err);
}

int plain_folder_open(const char *state_folder, struct error *err)
{
	return open_folder(state_folder, "plain", err);
}

static void set_held(int folder_fd, const char *id, struct error *err)
{
	char who[32] = "";
	struct record_owner owner;
	record_owner_find(folder_fd, id, &owner);
	if (owner.pid != 0) {
		snprintf(who, sizeof(who), " (process %d)", (int)owner.pid);
	}
	error_set(err, ERROR_UNAVAILABLE, "session %s belongs to a running broker%s", id, who);
	record_owner_finish(&owner);
}

int record_lock(int folder_fd, const char *id, struct error *err)
{
	char name[NAME_SIZE];
	file_name(name, id, lock_ending);
	int fd = lock_file_open(folder_fd, name);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s", name);
		return -1;
	}
	enum lock_state lock = lock_file_try(fd, LOCK_ALONE);
	if (lock == LOCK_TAKEN) {
		record_owner_note(fd, true);
		return fd;
	}
	if (lock == LOCK_ELSEWHERE) {
		set_held(folder_fd, id, err);
	} else {
		error_set_errno(err, errno, "locking %s", name);
	}
	fd_close(&fd);
	return -1;
}

/* Durable: the content survives a crash of the machine. */
static bool write_new(
	int folder_fd, const char *name, struct span json, bool is_durable, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening %s", name);
	}
	return fd_write_all(fd, json, err) &&
	       (!is_durable || (!point("record.writing") && fsync(fd) == 0) ||
		       error_set_errno(err, errno, "writing %s", name));
}

/* The folder for messages, because its disk may be full or its permissions missing. */
static const char *folder_text(int folder_fd, char *text, size_t size)
{
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", folder_fd);
	ssize_t len = readlink(link, text, size - 1);
	text[len > 0 ? len : 0] = '\0';
	return text;
}

static bool replace(
	int folder_fd, const char *id, struct span json, bool is_durable, struct error *err)
{
	char name[NAME_SIZE];
	char new_name[NAME_SIZE];
	file_name(name, id, json_ending);
	file_name(new_name, id, new_ending);
	if (!write_new(folder_fd, new_name, json, is_durable, err)) {
		char folder[512];
		unlinkat(folder_fd, new_name, 0);
		return error_prefix(err, "session record %s in %s", id,
			folder_text(folder_fd, folder, sizeof(folder)));
	}
	if ((is_durable && point("record.written")) ||
		renameat(folder_fd, new_name, folder_fd, name) != 0 ||
		(is_durable && (point("record.renamed") || fsync(folder_fd) != 0))) {
		return error_set_errno(err, errno, "session record %s: renaming %s", id, new_name);
	}
	return true;
}

bool record_save(int folder_fd, const char *id, struct span json, struct error *err)
{
	return replace(folder_fd, id, json, true, err);
}

bool record_write(int folder_fd, const char *id, struct span json, struct error *err)
{
	return replace(folder_fd, id, json, false, err);
}

bool record_put(int folder_fd, const struct record *record, struct error *err)
{
	struct buf json;
	buf_init(&json, RECORD_FILE_MAX);
	bool ok = record_write_json(record, &json, err) &&
	          record_save(folder_fd, record->id, buf_span(&json), err);
	buf_finish(&json);
	return ok;
}

static bool read_whole(int fd, struct buf *out, struct error *err)
{
	for (;;) {
		char *room = buf_reserve(out, 4096, err);
		if (!room) {
			return false;
		}
		ssize_t count = read(fd, room, 4096);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			return error_set_errno(err, errno, "reading it");
		}
		if (count == 0) {
			return true;
		}
		buf_commit(out, (size_t)count);
	}
}

bool record_load(int folder_fd, const char *id, struct record *out_record, struct error *err)
{
	char name[NAME_SIZE];
	file_name(name, id, json_ending);
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		error_set_errno(err, errnum, "session record %s", id);
		err->code = errnum == ENOENT ? ERROR_NOT_FOUND : ERROR_SYSTEM;
		return false;
	}
	struct buf text;
	struct record record = {0};
	buf_init(&text, RECORD_FILE_MAX);
	bool ok = read_whole(fd, &text, err) && record_read_json(&record, buf_span(&text), err);
	if (ok && strcmp(record.id, id) != 0) {
		ok = error_set(err, ERROR_PROTOCOL, "it says that its id is %s", record.id);
	}
	buf_finish(&text);
	if (!ok) {
		record_finish(&record);
		return error_prefix(err, "session record %s", id);
	}
	*out_record = record;
	return true;
}

bool record_remove(int folder_fd, const char *id, struct error *err)
{
	static const char *const endings[] = {
		json_ending, new_ending, TURN_LOCK_ENDING, lock_ending};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		char name[NAME_SIZE];
		file_name(name, id, endings[i]);
		if (unlinkat(folder_fd, name, 0) != 0 && errno != ENOENT) {
			return error_set_errno(err, errno, "removing %s", name);
		}
	}
	return true;
}

/* The id in a file name "ID + ending", or NULL; cuts `name` down to the id. */
static const char *id_of(char *name, const char *ending)
{
	size_t len = strlen(name);
	size_t id_len = RECORD_ID_SIZE - 1;
	if (len != id_len + strlen(ending) || strcmp(name + id_len, ending) != 0 ||
		strspn(name, "0123456789abcdef") != id_len) {
		return NULL;
	}
	name[id_len] = '\0';
	return name;
}

static bool visit_ids(int folder_fd, const char *ending, void (*visit)(void *data, const char *id),
	void *data, struct error *err)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		int errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "reading the session records");
	}
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		const char *id = id_of(entry->d_name, ending);
		if (id) {
			visit(data, id);
		}
	}
	closedir(folder);
	return true;
}

bool record_visit(
	int folder_fd, void (*visit)(void *data, const char *id), void *data, struct error *err)
{
	return visit_ids(folder_fd, json_ending, visit, data, err);
}

/* ---- what killed brokers left ---- */

/* A broker that writes a record holds its lock before the draft exists. */
static void sweep_draft(void *data, const char *id)
{
	int folder_fd = *(const int *)data;
	char name[NAME_SIZE];
	struct error is_live;
	ATTR_CLEANUP(fd_cleanup) int lock = record_lock(folder_fd, id, &is_live);
	if (lock < 0) {
		return;
	}
	file_name(name, id, new_ending);
	unlinkat(folder_fd, name, 0);
	file_name(name, id, json_ending);
	if (faccessat(folder_fd, name, F_OK, 0) != 0 && errno == ENOENT) {
		file_name(name, id, lock_ending);
		unlinkat(folder_fd, name, 0);
	}
}

bool record_sweep(int folder_fd, struct error *err)
{
	return visit_ids(folder_fd, new_ending, sweep_draft, &folder_fd, err);
}

/* A running broker holds its lock. For a dead one all files are removed, the lock file last. */
static void sweep_plain(void *data, const char *id)
{
	int folder_fd = *(const int *)data;
	struct error ignored; // it is removed another time
	ATTR_CLEANUP(fd_cleanup) int lock = record_lock(folder_fd, id, &ignored);
	(void)!(lock >= 0 && record_remove(folder_fd, id, &ignored));
}

bool plain_folder_sweep(int folder_fd, struct error *err)
{
	if (!record_limit_lock(folder_fd, err)) {
		return false;
	}
	bool ok = visit_ids(folder_fd, lock_ending, sweep_plain, &folder_fd, err);
	record_limit_unlock(folder_fd);
	return ok;
}

/* ---- too many ---- */

struct stopped {
	char id[RECORD_ID_SIZE];
	char updated[32];
};

struct stopped_list {
	int folder_fd;
	struct stopped *items;
	size_t count;
};

static void add_stopped(void *data, const char *id)
{
	struct stopped_list *list = data;
	struct record record;
	struct error ignored;
	if (!record_load(list->folder_fd, id, &record, &ignored)) {
		return; // commands that list records report it
	}
	if (record.state == RECORD_STOPPED) {
		list->items = mem_realloc(list->items, (list->count + 1) * sizeof(*list->items));
		struct stopped *item = &list->items[list->count++];
		memcpy(item->id, record.id, sizeof(item->id));
		memcpy(item->updated, record.updated, sizeof(item->updated));
	}
	record_finish(&record);
}

static int compare_updated(const void *a, const void *b)
{
	const struct stopped *x = a;
	const struct stopped *y = b;
	return strcmp(x->updated, y->updated);
}

bool record_prune(int folder_fd, size_t kept_max, struct error *err)
{
	struct stopped_list list = {.folder_fd = folder_fd};
	bool ok = record_visit(folder_fd, add_stopped, &list, err);
	if (list.count > 1) {
		qsort(list.items, list.count, sizeof(*list.items), compare_updated);
	}
	for (size_t i = 0; ok && i + kept_max < list.count; i++) {
		struct error is_live;
		int lock = record_lock(folder_fd, list.items[i].id, &is_live);
		if (lock >= 0) {
			ok = record_remove(folder_fd, list.items[i].id, err);
			fd_close(&lock);
		}
	}
	free(list.items);
	return ok;
}
