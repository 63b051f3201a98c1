/* SPDX-License-Identifier: MIT */
#include "base/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

/* systemd's file-hierarchy(7). */
static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};

const char *cgroup_mount(void)
{
	for (size_t i = 0; i < ARRAY_LENGTH(mounts); i++) {
		struct statfs about;
		if (statfs(mounts[i], &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC) {
			return mounts[i];
		}
	}
	return "";
}

bool cgroup_path_of(pid_t pid, char out[CGROUP_PATH_MAX])
{
	char name[64];
	char line[CGROUP_PATH_MAX + 8];
	text_whole(name, sizeof(name), "/proc/%d/cgroup", (int)pid);
	FILE *file = fopen(name, "re");
	bool is_found = false;
	while (file && !is_found && fgets(line, sizeof(line), file)) {
		char *end = strchr(line, '\n');
		if (strncmp(line, "0::/", 4) == 0 && end) {
			*end = '\0';
			is_found = text_whole(out, CGROUP_PATH_MAX, "%s", line + 3);
		}
	}
	if (file) {
		fclose(file);
	}
	return is_found;
}

static FILE *open_members(int group_fd)
{
	int fd = openat(group_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		fd_close(&fd);
	}
	return file;
}

/*
 * If the hierarchy was mounted in another cgroup namespace, the path names another cgroup, or none.
 */
static bool holds(int group_fd, pid_t pid)
{
	FILE *file = open_members(group_fd);
	bool is_found = false;
	char line[32];
	while (file && !is_found && fgets(line, sizeof(line), file)) {
		is_found = strtol(line, NULL, 10) == pid;
	}
	if (file) {
		fclose(file);
	}
	return is_found;
}

int cgroup_open_of(const char *path, pid_t pid)
{
	char full[CGROUP_PATH_MAX + 32];
	const char *mount = cgroup_mount();
	if (!*mount || !text_whole(full, sizeof(full), "%s%s", mount, path)) {
		return -1;
	}
	int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !holds(fd, pid)) {
		fd_close(&fd);
	}
	return fd;
}

int cgroup_open_own(const char *path)
{
	return cgroup_open_of(path, getpid());
}

bool cgroup_path(int group_fd, char out[CGROUP_PATH_MAX])
{
	char link[64];
	char full[CGROUP_PATH_MAX + 32];
	const char *mount = cgroup_mount();
	text_whole(link, sizeof(link), "/proc/self/fd/%d", group_fd);
	ssize_t len = readlink(link, full, sizeof(full) - 1);
	if (len < 0 || !*mount) {
		return false;
	}
	full[len] = '\0';
	size_t mount_len = strlen(mount);
	return strncmp(full, mount, mount_len) == 0 && full[mount_len] == '/' &&
	       text_whole(out, CGROUP_PATH_MAX, "%s", full + mount_len);
}

bool cgroup_write(int group_fd, const char *file, const char *text)
{
	ATTR_CLEANUP(fd_cleanup) int fd = openat(group_fd, file, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Reads at most 4 KiB of the file, after a newline. */
static bool read_text(int group_fd, const char *file, char *text, size_t size)
{
	ATTR_CLEANUP(fd_cleanup) int fd = openat(group_fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text + 1, size - 2);
	text[0] = '\n';
	text[count > 0 ? count + 1 : 1] = '\0';
	return count > 0;
}

bool cgroup_read(int group_fd, const char *file, uint64_t *out_number)
{
	char text[64];
	if (!read_text(group_fd, file, text, sizeof(text))) {
		return false;
	}
	*out_number = strncmp(text + 1, "max", 3) == 0 ? UINT64_MAX : strtoull(text + 1, NULL, 10);
	return true;
}

uint64_t cgroup_read_key(int group_fd, const char *file, const char *key)
{
	char text[4096];
	char start[64];
	if (!read_text(group_fd, file, text, sizeof(text)) ||
		!text_whole(start, sizeof(start), "\n%s ", key)) {
		return 0;
	}
	const char *at = strstr(text, start);
	return at ? strtoull(at + strlen(start), NULL, 10) : 0;
}

void cgroup_take_event(int *fd)
{
	char text[4096];
	if (*fd >= 0 && pread(*fd, text, sizeof(text), 0) < 0 && errno != EINTR) {
		fd_close(fd);
	}
}

void cgroup_kill(int group_fd)
{
	if (cgroup_write(group_fd, "cgroup.kill", "1")) {
		return;
	}
	FILE *file = open_members(group_fd); // before Linux 5.14
	char line[32];
	while (file && fgets(line, sizeof(line), file)) {
		long pid = strtol(line, NULL, 10);
		if (pid > 1) { // 0: one of another pid namespace
			kill((pid_t)pid, SIGKILL);
		}
	}
	if (file) {
		fclose(file);
	}
}
