/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_owner.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/libc.h"
#include "base/lock_file.h"
#include "base/text.h"
#include "broker/ledger/record.h"

enum { NOTE_MAX = 64, PROC_PATH_MAX = 64, INFO_MAX = 1024 };

static const char finishing_word[] = "finishing";

void record_owner_note(int lock_fd, bool is_session)
{
	char note[NOTE_MAX];
	int len = snprintf(note, sizeof(note), "%d%s%s\n", (int)getpid(), is_session ? "" : " ",
		is_session ? "" : finishing_word);
	/* The content only tells the user who the owner is; the lock decides. */
	(void)!ftruncate(lock_fd, 0);
	(void)!pwrite(lock_fd, note, (size_t)len, 0);
}

/* ---- the files that a process has open ---- */

/* Reads the beginning of a file as text. */
static bool read_start(int folder_fd, const char *name, char *text, size_t size)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, size - 1);
	text[len > 0 ? len : 0] = '\0';
	return len >= 0;
}

/* Whether the process holds a lock on this file: checks its descriptors in /proc. */
static bool holds_lock(int pid_fd, const struct stat *file)
{
	char path[PROC_PATH_MAX];
	int fd = openat(pid_fd, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	bool holds = false;
	for (struct dirent *entry = folder ? readdir(folder) : NULL; entry && !holds;
		entry = readdir(folder)) {
		struct stat status;
		char info[INFO_MAX];
		if (!isdigit((unsigned char)entry->d_name[0])) {
			continue;
		}
		text_whole(path, sizeof(path), "fd/%s", entry->d_name);
		holds = fstatat(pid_fd, path, &status, 0) == 0 && status.st_ino == file->st_ino &&
		        status.st_dev == file->st_dev &&
		        read_start(dirfd(folder), entry->d_name, info, sizeof(info)) &&
		        strstr(info, "FLOCK") != NULL;
	}
	if (folder) {
		closedir(folder);
	}
	return holds;
}

/* ---- finding the owner ---- */

static void find_process(struct record_owner *owner, const char *note, const struct stat *file)
{
	char *end;
	long pid = strtol(note, &end, 10);
	if (end == note || pid <= 1 || pid > INT32_MAX) {
		return;
	}
	/*
	 * From here on the folder stands for this one process, even after its end;
	 * pidfd_send_signal takes it.
	 */
	char path[PROC_PATH_MAX];
	snprintf(path, sizeof(path), "/proc/%ld", pid);
	int pid_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (pid_fd < 0 || !holds_lock(pid_fd, file)) {
		fd_close(&pid_fd);
		return;
	}
	owner->pid = (pid_t)pid;
	owner->pid_fd = pid_fd;
	owner->is_session = strstr(end, finishing_word) == NULL;
}

static bool is_locked(int fd)
{
	return lock_file_try(fd, LOCK_SHARED) == LOCK_ELSEWHERE;
}

void record_owner_find(int folder_fd, const char *id, struct record_owner *owner)
{
	char name[RECORD_ID_SIZE + 8];
	char note[NOTE_MAX];
	struct stat file;
	*owner = (struct record_owner){.pid_fd = -1};
	text_whole(name, sizeof(name), "%s.lock", id);
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
		return;
	}
	ssize_t len = pread(fd, note, sizeof(note) - 1, 0);
	note[len > 0 ? len : 0] = '\0';
	owner->was_finishing = strstr(note, finishing_word) != NULL;
	owner->noted_ms = file.st_mtim.tv_sec * 1000LL + file.st_mtim.tv_nsec / 1000000;
	find_process(owner, note, &file);
	owner->is_held = owner->pid != 0 || is_locked(fd);
}

bool record_owner_holds(const struct record_owner *owner, int folder_fd, const char *name)
{
	struct stat file;
	return owner->pid_fd >= 0 && fstatat(folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(file.st_mode) && holds_lock(owner->pid_fd, &file);
}

void record_owner_finish(struct record_owner *owner)
{
	fd_close(&owner->pid_fd);
}

/* ---- ending the owner ---- */

/*
 * Compares the program's name, because a broker that was upgraded while it ran has another file
 * than ours.
 */
static bool is_broker(int pid_fd)
{
	char name[NOTE_MAX];
	return read_start(pid_fd, "comm", name, sizeof(name)) &&
	       strncmp(name, "acp-broker", strlen("acp-broker")) == 0;
}

bool record_owner_stop(const struct record_owner *owner, struct error *err)
{
	if (owner->pid == 0) {
		return error_set(err, ERROR_DENIED,
			"its process cannot be seen from here (another user, or another "
			"container): end it there");
	}
	if (!owner->is_session) {
		return error_set(err, ERROR_DENIED,
			"process %d is collecting its changes: wait for that to end",
			(int)owner->pid);
	}
	if (!is_broker(owner->pid_fd)) {
		return error_set(err, ERROR_DENIED,
			"process %d holds its lock but is not an acp-broker: no signal was sent",
			(int)owner->pid);
	}
	return libc_pidfd_signal(owner->pid_fd, SIGTERM) == 0 || errno == ESRCH ||
	       error_set_errno(err, errno, "ending process %d", (int)owner->pid);
}
