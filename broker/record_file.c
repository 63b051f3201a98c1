/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "broker/record.h"

enum { NAME_SIZE = RECORD_ID_SIZE + 8 };

static const char json_ending[] = ".json";
static const char lock_ending[] = ".lock";
static const char new_ending[] = ".new";

static void file_name(char name[NAME_SIZE], const char *id, const char *ending)
{
	snprintf(name, NAME_SIZE, "%.*s%s", RECORD_ID_SIZE - 1, id, ending);
}

int record_folder_open(const char *state_folder, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup) int state_fd = open(state_folder, O_DIRECTORY | O_CLOEXEC);
	if (state_fd < 0) {
		error_set_errno(err, errno, "opening %s", state_folder);
		return -1;
	}
	if (mkdirat(state_fd, "sessions", 0700) != 0 && errno != EEXIST) {
		error_set_errno(err, errno, "making %s/sessions", state_folder);
		return -1;
	}
	int fd = openat(state_fd, "sessions", O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s/sessions", state_folder);
	}
	return fd;
}

int record_lock(int folder_fd, const char *id, struct error *err)
{
	char name[NAME_SIZE];
	file_name(name, id, lock_ending);
	int fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		error_set_errno(err, errno, "opening %s", name);
		return -1;
	}
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		return fd;
	}
	if (errno == EWOULDBLOCK) {
		error_set(err, ERROR_UNAVAILABLE, "session %s belongs to a broker that is running",
			id);
	} else {
		error_set_errno(err, errno, "locking %s", name);
	}
	fd_close(&fd);
	return -1;
}

static bool write_new(int folder_fd, const char *name, struct span json, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "opening %s", name);
	}
	return fd_write_all(fd, json, err) &&
	       (fsync(fd) == 0 || error_set_errno(err, errno, "writing %s", name));
}

bool record_save(int folder_fd, const char *id, struct span json, struct error *err)
{
	char name[NAME_SIZE];
	char new_name[NAME_SIZE];
	file_name(name, id, json_ending);
	file_name(new_name, id, new_ending);
	if (!write_new(folder_fd, new_name, json, err)) {
		unlinkat(folder_fd, new_name, 0);
		return error_prefix(err, "session record %s", id);
	}
	if (renameat(folder_fd, new_name, folder_fd, name) != 0 || fsync(folder_fd) != 0) {
		return error_set_errno(err, errno, "session record %s: renaming %s", id, new_name);
	}
	return true;
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
		ok = error_set(err, ERROR_PROTOCOL, "it says that it is %s", record.id);
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
	static const char *const endings[] = {json_ending, new_ending, lock_ending};
	for (size_t i = 0; i < ARRAY_LENGTH(endings); i++) {
		char name[NAME_SIZE];
		file_name(name, id, endings[i]);
		if (unlinkat(folder_fd, name, 0) != 0 && errno != ENOENT) {
			return error_set_errno(err, errno, "removing %s", name);
		}
	}
	return true;
}

/* The id of a file named ID.json, or NULL; `name` is shortened to it. */
static const char *id_of(char *name)
{
	size_t len = strlen(name);
	size_t id_len = RECORD_ID_SIZE - 1;
	if (len != id_len + sizeof(json_ending) - 1 || strcmp(name + id_len, json_ending) != 0 ||
		strspn(name, "0123456789abcdef") != id_len) {
		return NULL;
	}
	name[id_len] = '\0';
	return name;
}

bool record_visit(
	int folder_fd, void (*visit)(void *data, const char *id), void *data, struct error *err)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		int errnum = errno;
		fd_close(&fd);
		return error_set_errno(err, errnum, "reading the session records");
	}
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
		const char *id = id_of(entry->d_name);
		if (id) {
			visit(data, id);
		}
	}
	closedir(folder);
	return true;
}
