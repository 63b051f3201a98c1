/* SPDX-License-Identifier: MIT */
#include "providers/daytona/note.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/folder.h"
#include "base/json_doc.h"
#include "base/json_writer.h"
#include "base/lock_file.h"
#include "base/point.h"
#include "base/text.h"
#include "providers/daytona/identity.h"

enum {
	NOTE_VERSION = 1,
	NOTE_MAX = 16 * 1024,
	FILE_NAME_SIZE = DAYTONA_NAME_SIZE + 8,
	PATH_SIZE = 4096,
	LOCK_TRIES = 16, // of a file that its last holder removes in that moment
};

static const char note_ending[] = ".json";
static const char *const lock_endings[] = {
	[DAYTONA_LOCK_SHARED] = ".lock",
	[DAYTONA_LOCK_ALONE] = ".lock",
	[DAYTONA_LOCK_TOKEN] = ".token",
};

static void file_name(char text[FILE_NAME_SIZE], const char *name, const char *ending)
{
	text_whole(text, FILE_NAME_SIZE, "%s%s", name, ending);
}

static int open_folder(const char *state_folder, struct error *err)
{
	char path[PATH_SIZE];
	if (!state_folder || !*state_folder) {
		error_set(err, ERROR_CONFIG,
			"there is no place to write down which sandboxes there are: set HOME or "
			"XDG_STATE_HOME");
		return -1;
	}
	text_whole(path, sizeof(path), "%s/daytona", state_folder);
	if (!folder_make_state(path, err)) {
		return -1;
	}
	int fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s", path);
	}
	return fd;
}

void daytona_note_finish(struct daytona_note *note)
{
	daytona_mark_finish(&note->mark);
	free(note->profile);
	free(note->workspace);
	*note = (struct daytona_note){0};
}

/* ---- locks ---- */

static bool set_held(struct error *err, const char *name)
{
	return error_set(err, ERROR_UNAVAILABLE, "another broker has sandbox %s", name);
}

int daytona_note_lock(
	const char *state_folder, const char *name, enum daytona_lock lock, struct error *err)
{
	char file[FILE_NAME_SIZE];
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(state_folder, err);
	file_name(file, name, lock_endings[lock]);
	for (int i = 0; folder_fd >= 0 && i < LOCK_TRIES; i++) {
		int fd = lock_file_open(folder_fd, file);
		if (fd < 0) {
			error_set_errno(err, errno, "opening %s", file);
			return -1;
		}
		enum lock_state state =
			lock_file_try(fd, lock == DAYTONA_LOCK_SHARED ? LOCK_SHARED : LOCK_ALONE);
		if (state != LOCK_TAKEN) {
			if (state == LOCK_ELSEWHERE) {
				set_held(err, name);
			} else {
				error_set_errno(err, errno, "locking %s", file);
			}
			fd_close(&fd);
			return -1;
		}
		if (lock_file_is_current(fd, folder_fd, file)) {
			return fd;
		}
		fd_close(&fd);
	}
	if (folder_fd >= 0) {
		set_held(err, name);
	}
	return -1;
}

bool daytona_note_lock_alone(int lock_fd, const char *name, struct error *err)
{
	enum lock_state state = lock_file_try(lock_fd, LOCK_ALONE);
	if (state == LOCK_TAKEN) {
		return true;
	}
	return state == LOCK_ELSEWHERE ? set_held(err, name)
	                               : error_set_errno(err, errno, "locking %s", name);
}

bool daytona_note_is_held(const char *state_folder, const char *name)
{
	char file[FILE_NAME_SIZE];
	struct error ignored;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(state_folder, &ignored);
	file_name(file, name, lock_endings[DAYTONA_LOCK_SHARED]);
	if (folder_fd < 0) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = openat(folder_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && lock_file_try(fd, LOCK_ALONE) == LOCK_ELSEWHERE;
}

/* ---- what is in it ---- */

static bool write_json(
	const char *name, const struct daytona_note *note, struct buf *out, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member_int(&writer, "version", NOTE_VERSION);
	json_write_member(&writer, "name", name);
	json_write_member(&writer, "api", note->mark.api);
	json_write_member(&writer, "organization", note->mark.organization);
	json_write_member(&writer, "keySalt", note->mark.salt);
	json_write_member(&writer, "keyPrint", note->mark.print);
	json_write_member(&writer, "profile", note->profile);
	json_write_member(&writer, "workspace", note->workspace);
	json_write_member_bool(&writer, "transient", note->is_transient);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

static bool write_file(int folder_fd, const char *file, struct span bytes, struct error *err)
{
	char temporary[FILE_NAME_SIZE + 16];
	text_whole(temporary, sizeof(temporary), ".%s.%d", file, (int)getpid());
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		folder_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening %s", temporary);
	}
	if (!fd_write_all(fd, bytes, err)) {
		unlinkat(folder_fd, temporary, 0);
		return false;
	}
	if (point("daytona.noting") || fsync(fd) != 0 ||
		renameat(folder_fd, temporary, folder_fd, file) != 0 || fsync(folder_fd) != 0) {
		int errnum = errno;
		unlinkat(folder_fd, temporary, 0);
		return error_set_errno(err, errnum, "writing %s", file);
	}
	return true;
}

bool daytona_note_write(const char *state_folder, const char *name, const struct daytona_note *note,
	struct error *err)
{
	char file[FILE_NAME_SIZE];
	struct buf json;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(state_folder, err);
	file_name(file, name, note_ending);
	if (folder_fd < 0) {
		return false;
	}
	buf_init(&json, NOTE_MAX);
	bool ok = (write_json(name, note, &json, err) &&
			  write_file(folder_fd, file, buf_span(&json), err)) ||
	          error_prefix(err, "noting sandbox %s in %s/daytona", name, state_folder);
	buf_finish(&json);
	return ok;
}

/* "" where it is missing, as in what earlier brokers have written. */
static void read_hex(char *text, size_t size, const struct json_doc *doc, const char *member)
{
	char *told = json_string(doc, json_get(doc, 0, member));
	text_format(text, size, "%s", told ? told : "");
	free(told);
}

static bool read_json(struct span text, struct daytona_note *out_note, struct error *err)
{
	struct json_doc *doc = json_doc_parse(text, err);
	if (!doc) {
		return false;
	}
	struct daytona_note note = {
		.mark = {.api = json_string(doc, json_get(doc, 0, "api")),
			.organization = json_string(doc, json_get(doc, 0, "organization"))},
		.profile = json_string(doc, json_get(doc, 0, "profile")),
		.workspace = json_string(doc, json_get(doc, 0, "workspace")),
		.is_transient = json_bool(doc, json_get(doc, 0, "transient"), false)};
	read_hex(note.mark.salt, sizeof(note.mark.salt), doc, "keySalt");
	read_hex(note.mark.print, sizeof(note.mark.print), doc, "keyPrint");
	bool ok = note.mark.api && note.profile &&
	          json_int(doc, json_get(doc, 0, "version"), 0) == NOTE_VERSION;
	json_doc_destroy(doc);
	if (!ok) {
		daytona_note_finish(&note);
		return error_set(err, ERROR_PROTOCOL, "it is of no broker of this version");
	}
	*out_note = note;
	return true;
}

bool daytona_note_read(const char *state_folder, const char *name, struct daytona_note *out_note,
	struct error *err)
{
	char file[FILE_NAME_SIZE];
	char text[NOTE_MAX];
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(state_folder, err);
	file_name(file, name, note_ending);
	if (folder_fd < 0) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		return error_set(err, ERROR_NOT_FOUND, "there is no note of sandbox %s", name);
	}
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (len < 0) {
		return error_set_errno(err, errno, "reading %s", file);
	}
	return read_json((struct span){text, (size_t)len}, out_note, err) ||
	       error_prefix(err, "the note %s", file);
}

/* The lock itself goes last: whoever opens it before sees that it is gone, and tries again. */
void daytona_note_remove(const char *state_folder, const char *name)
{
	const char *const endings[] = {
		note_ending, lock_endings[DAYTONA_LOCK_TOKEN], lock_endings[DAYTONA_LOCK_ALONE]};
	struct error ignored;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(state_folder, &ignored);
	for (size_t i = 0; folder_fd >= 0 && i < ARRAY_LENGTH(endings); i++) {
		char file[FILE_NAME_SIZE];
		file_name(file, name, endings[i]);
		unlinkat(folder_fd, file, 0);
	}
}

/* Half a note, of a process that is gone. */
static bool is_left(const char *file)
{
	const char *dot = strrchr(file, '.');
	if (file[0] != '.' || dot == file || !dot[1] || dot[1 + strspn(dot + 1, "0123456789")]) {
		return false;
	}
	pid_t pid = (pid_t)strtol(dot + 1, NULL, 10);
	return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

/* The name that a file is of, where it ends so. */
static bool name_of(char name[DAYTONA_NAME_SIZE], const char *file, const char *ending)
{
	size_t len = strlen(file);
	size_t ending_len = strlen(ending);
	if (len <= ending_len || len - ending_len >= DAYTONA_NAME_SIZE ||
		strcmp(file + len - ending_len, ending) != 0) {
		return false;
	}
	text_whole(name, DAYTONA_NAME_SIZE, "%.*s", (int)(len - ending_len), file);
	return daytona_name_is_valid(name);
}

/* A lock that nobody holds, of what was never noted. */
static void remove_idle_lock(const char *state_folder, int folder_fd, const char *name)
{
	char file[FILE_NAME_SIZE];
	struct error ignored;
	file_name(file, name, note_ending);
	if (faccessat(folder_fd, file, F_OK, 0) == 0) {
		return;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = daytona_note_lock(state_folder, name, DAYTONA_LOCK_ALONE, &ignored);
	if (fd >= 0 && faccessat(folder_fd, file, F_OK, 0) != 0) {
		daytona_note_remove(state_folder, name);
	}
}

bool daytona_note_visit(const char *state_folder, void (*visit)(void *data, const char *name),
	void *data, struct error *err)
{
	int folder_fd = open_folder(state_folder, err);
	if (folder_fd < 0) {
		return false;
	}
	DIR *folder = fdopendir(folder_fd);
	if (!folder) {
		error_set_errno(err, errno, "reading the notes of sandboxes");
		fd_close(&folder_fd);
		return false;
	}
	const struct dirent *entry;
	while ((entry = readdir(folder))) {
		char name[DAYTONA_NAME_SIZE];
		if (is_left(entry->d_name)) {
			unlinkat(folder_fd, entry->d_name, 0);
		} else if (name_of(name, entry->d_name, note_ending)) {
			visit(data, name);
		} else if (name_of(name, entry->d_name, lock_endings[DAYTONA_LOCK_ALONE])) {
			remove_idle_lock(state_folder, folder_fd, name);
		}
	}
	closedir(folder);
	return true;
}
