/* SPDX-License-Identifier: MIT */
#include "providers/notes.h"

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
#include "base/point.h"
#include "base/text.h"

enum {
	FILE_NAME_SIZE = NOTE_NAME_SIZE + 8,
	PATH_SIZE = 4096,
	LOCK_TRIES = 16, // for a lock file that its last holder is removing
};

static const char note_ending[] = ".json";
static const char lock_ending[] = ".lock";

bool notes_name_is_valid(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";
	size_t len = strspn(name, allowed);
	return len > 0 && len < NOTE_NAME_SIZE && !name[len] && name[0] != '.' && name[0] != '-';
}

static void file_name(char text[FILE_NAME_SIZE], const char *name, const char *ending)
{
	text_whole(text, FILE_NAME_SIZE, "%s%s", name, ending);
}

static int open_folder(const struct notes *notes, struct error *err)
{
	char path[PATH_SIZE];
	if (!notes->state_folder || !*notes->state_folder) {
		error_set(err, ERROR_CONFIG,
			"there is no folder for notes on sandboxes: set HOME or "
			"XDG_STATE_HOME");
		return -1;
	}
	text_whole(path, sizeof(path), "%s/%s", notes->state_folder, notes->folder);
	if (!folder_make_state(path, err)) {
		return -1;
	}
	int fd = open(path, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s", path);
	}
	return fd;
}

/* ---- locks ---- */

static bool set_held(struct error *err, const char *name)
{
	return error_set(err, ERROR_UNAVAILABLE, "another broker is using sandbox %s", name);
}

int notes_lock(const struct notes *notes, const char *name, bool more, enum lock_kind kind,
	struct error *err)
{
	char file[FILE_NAME_SIZE];
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(notes, err);
	file_name(file, name, more ? notes->more_lock : lock_ending);
	for (int i = 0; folder_fd >= 0 && i < LOCK_TRIES; i++) {
		int fd = lock_file_open(folder_fd, file);
		if (fd < 0) {
			error_set_errno(err, errno, "opening %s", file);
			return -1;
		}
		enum lock_state state = lock_file_try(fd, kind);
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

bool notes_change_lock(int lock_fd, const char *name, enum lock_kind kind, struct error *err)
{
	enum lock_state state = lock_file_try(lock_fd, kind);
	if (state == LOCK_TAKEN) {
		return true;
	}
	return state == LOCK_ELSEWHERE ? set_held(err, name)
	                               : error_set_errno(err, errno, "locking %s", name);
}

bool notes_is_held(const struct notes *notes, const char *name)
{
	char file[FILE_NAME_SIZE];
	struct error ignored;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(notes, &ignored);
	file_name(file, name, lock_ending);
	if (folder_fd < 0) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup) int fd = openat(folder_fd, file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && lock_file_try(fd, LOCK_ALONE) == LOCK_ELSEWHERE;
}

/* ---- notes ---- */

static bool write_file(const struct notes *notes, int folder_fd, const char *file,
	struct span bytes, struct error *err)
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
	if (point(notes->writing) || fsync(fd) != 0 ||
		renameat(folder_fd, temporary, folder_fd, file) != 0 || fsync(folder_fd) != 0) {
		int errnum = errno;
		unlinkat(folder_fd, temporary, 0);
		return error_set_errno(err, errnum, "writing %s", file);
	}
	return true;
}

bool notes_write(const struct notes *notes, const char *name, struct span text, struct error *err)
{
	char file[FILE_NAME_SIZE];
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(notes, err);
	file_name(file, name, note_ending);
	return folder_fd >= 0 &&
	       (write_file(notes, folder_fd, file, text, err) ||
		       error_prefix(err, "writing the note of sandbox %s in %s/%s", name,
			       notes->state_folder, notes->folder));
}

bool notes_read(const struct notes *notes, const char *name, char out_text[NOTE_MAX],
	size_t *out_len, struct error *err)
{
	char file[FILE_NAME_SIZE];
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(notes, err);
	file_name(file, name, note_ending);
	if (folder_fd < 0) {
		return false;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		return error_set(err, ERROR_NOT_FOUND, "there is no note of sandbox %s", name);
	}
	ssize_t len = fd < 0 ? -1 : read(fd, out_text, NOTE_MAX);
	if (len < 0) {
		return error_set_errno(err, errno, "reading %s", file);
	}
	*out_len = (size_t)len;
	return true;
}

/*
 * Removes the lock file last: a broker that opened it before notices that it is gone, and tries
 * again.
 */
void notes_remove(const struct notes *notes, const char *name)
{
	const char *const endings[] = {note_ending, notes->more_lock, lock_ending};
	struct error ignored;
	ATTR_CLEANUP(fd_cleanup) int folder_fd = open_folder(notes, &ignored);
	for (size_t i = 0; folder_fd >= 0 && i < ARRAY_LENGTH(endings); i++) {
		char file[FILE_NAME_SIZE];
		if (endings[i]) {
			file_name(file, name, endings[i]);
			unlinkat(folder_fd, file, 0);
		}
	}
}

/* An incomplete note of a process that has ended. */
static bool is_left(const char *file)
{
	const char *dot = strrchr(file, '.');
	if (file[0] != '.' || dot == file || !dot[1] || dot[1 + strspn(dot + 1, "0123456789")]) {
		return false;
	}
	pid_t pid = (pid_t)strtol(dot + 1, NULL, 10);
	return pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
}

/* The sandbox's name in the file's name, if that has this ending. */
static bool name_of(char name[NOTE_NAME_SIZE], const char *file, const char *ending)
{
	size_t len = strlen(file);
	size_t ending_len = strlen(ending);
	if (len <= ending_len || len - ending_len >= NOTE_NAME_SIZE ||
		strcmp(file + len - ending_len, ending) != 0) {
		return false;
	}
	text_whole(name, NOTE_NAME_SIZE, "%.*s", (int)(len - ending_len), file);
	return notes_name_is_valid(name);
}

/* Removes a lock that nobody holds for a sandbox that was never noted. */
static void remove_idle_lock(const struct notes *notes, int folder_fd, const char *name)
{
	char file[FILE_NAME_SIZE];
	struct error ignored;
	file_name(file, name, note_ending);
	if (faccessat(folder_fd, file, F_OK, 0) == 0) {
		return;
	}
	ATTR_CLEANUP(fd_cleanup)
	int fd = notes_lock(notes, name, false, LOCK_ALONE, &ignored);
	if (fd >= 0 && faccessat(folder_fd, file, F_OK, 0) != 0) {
		notes_remove(notes, name);
	}
}

bool notes_visit(const struct notes *notes, void (*visit)(void *data, const char *name), void *data,
	struct error *err)
{
	int folder_fd = open_folder(notes, err);
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
		char name[NOTE_NAME_SIZE];
		if (is_left(entry->d_name)) {
			unlinkat(folder_fd, entry->d_name, 0);
		} else if (name_of(name, entry->d_name, note_ending)) {
			visit(data, name);
		} else if (name_of(name, entry->d_name, lock_ending)) {
			remove_idle_lock(notes, folder_fd, name);
		}
	}
	closedir(folder);
	return true;
}
