/* SPDX-License-Identifier: MIT */
#include "base/limit_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/text.h"

enum {
	PERIOD_US = 100000, // of cpu.max
	NAME_SIZE = 64,
	MAKE_TRIES = 10,
};

/* The limits to set, combined with those of the cgroups in between. UINT64_MAX: none. */
struct wanted {
	uint64_t memory;
	uint64_t processes;
	uint64_t quota_us; // in each period
};

static uint64_t lower(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

static void take_over(struct wanted *wanted, int fd)
{
	uint64_t number;
	char text[64] = "";
	if (cgroup_read(fd, "memory.max", &number)) {
		wanted->memory = lower(wanted->memory, number);
	}
	if (cgroup_read(fd, "pids.max", &number)) {
		wanted->processes = lower(wanted->processes, number);
	}
	ATTR_CLEANUP(fd_cleanup) int file = openat(fd, "cpu.max", O_RDONLY | O_CLOEXEC);
	if (file >= 0 && read(file, text, sizeof(text) - 1) > 0 && text[0] != 'm') {
		char *end;
		uint64_t quota = strtoull(text, &end, 10);
		uint64_t period = strtoull(end, NULL, 10);
		if (period > 0) {
			wanted->quota_us = lower(wanted->quota_us, quota * PERIOD_US / period);
		}
	}
}

/*
 * Enables the controllers for the cgroups below this one. Never call it for a cgroup above the
 * place, because others administer that. The controllers stay enabled at the end, because others
 * may use them by then. One may be enabled already, or be missing; we find out when we set the
 * limits. Returns whether the kernel refused one because the cgroup has processes itself.
 */
static bool enable(int fd, const struct group_limits *limits)
{
	static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
	size_t count = limits->cpus > 0 ? 3 : 2;
	bool is_busy = false;
	for (size_t i = 0; i < count; i++) {
		is_busy = (!cgroup_write(fd, "cgroup.subtree_control", controllers[i]) &&
				  errno == EBUSY) ||
		          is_busy;
	}
	return is_busy;
}

static bool is_cgroup(int fd)
{
	struct statfs about;
	return fd >= 0 && fstatfs(fd, &about) == 0 && about.f_type == CGROUP2_SUPER_MAGIC;
}

/* The root cgroup, which alone may have processes and limited children. */
static bool is_root(int fd)
{
	return faccessat(fd, "cgroup.type", F_OK, 0) != 0;
}

static int open_parent(int fd)
{
	int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!is_cgroup(parent)) {
		fd_close(&parent);
	}
	return parent;
}

/* Whether we may make a child here, and move processes to it. */
static bool is_ours(int fd)
{
	return faccessat(fd, ".", W_OK, AT_EACCESS) == 0 &&
	       faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0;
}

/* Finds the nearest such ancestor. Takes over the limits in between. */
static int find_place(struct wanted *wanted, struct error *err)
{
	char own[CGROUP_PATH_MAX];
	int fd = cgroup_path_of(getpid(), own) ? cgroup_open_own(own) : -1;
	if (fd < 0) {
		error_set(err, ERROR_UNAVAILABLE, "there is no cgroup v2 below /sys/fs/cgroup");
		return -1;
	}
	bool is_fit = is_root(fd) && is_ours(fd);
	while (fd >= 0 && !is_fit) {
		int parent = open_parent(fd);
		take_over(wanted, fd);
		fd_close(&fd);
		fd = parent;
		is_fit = fd >= 0 && is_ours(fd);
	}
	if (fd < 0) {
		error_set(err, ERROR_UNAVAILABLE, "we may not write to any cgroup above %s", own);
	}
	return fd;
}

static bool set(int fd, const char *file, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return value != UINT64_MAX && cgroup_write(fd, file, text);
}

static void set_limits(
	struct limit_group *group, const struct group_limits *limits, const struct wanted *wanted)
{
	char text[64];
	group->limits_memory =
		set(group->fd, "memory.max", wanted->memory) && limits->memory_bytes > 0;
	if (group->limits_memory) {
		(void)!cgroup_write(group->fd, "memory.swap.max", "0"); // may fail: no swap
	}
	group->limits_processes =
		set(group->fd, "pids.max", wanted->processes) && limits->processes > 0;
	snprintf(text, sizeof(text), "%llu %d", (unsigned long long)wanted->quota_us, PERIOD_US);
	group->limits_cpus = wanted->quota_us != UINT64_MAX &&
	                     cgroup_write(group->fd, "cpu.max", text) && limits->cpus > 0;
}

/*
 * Makes a cgroup and locks it before a search for abandoned ones can find it. Returns its
 * descriptor, or -1 with errno.
 */
static int make_locked(int folder, const char *name)
{
	int errnum = EBUSY;
	for (int i = 0; i < MAKE_TRIES; i++) {
		if (mkdirat(folder, name, 0755) != 0 && errno != EEXIST) {
			errnum = errno;
			break;
		}
		int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && lock_file_try(fd, LOCK_ALONE) == LOCK_TAKEN &&
			lock_file_is_current(fd, folder, name)) {
			return fd;
		}
		fd_close(&fd);
	}
	errno = errnum;
	return -1;
}

static bool make(struct limit_group *group, int place, struct error *err)
{
	static unsigned last_number; // loop thread
	char name[NAME_SIZE];
	for (int i = 0; i < MAKE_TRIES; i++) {
		text_whole(name, sizeof(name), LIMIT_GROUP_PREFIX "%d-%u", (int)getpid(),
			++last_number);
		group->fd = make_locked(place, name);
		if (group->fd >= 0 || errno != EBUSY) {
			break;
		}
	}
	int errnum = errno;
	return group->fd >= 0 || error_set_errno(err, errnum, "making the cgroup %s", name);
}

bool limit_group_open(
	struct limit_group *group, const struct group_limits *limits, struct error *err)
{
	struct wanted wanted = {
		.memory = limits->memory_bytes > 0 ? limits->memory_bytes : UINT64_MAX,
		.processes = limits->processes > 0 ? limits->processes : UINT64_MAX,
		.quota_us = limits->cpus > 0 ? limits->cpus * PERIOD_US : UINT64_MAX,
	};
	ATTR_CLEANUP(fd_cleanup) int place = find_place(&wanted, err);
	if (place < 0) {
		return false;
	}
	group->is_busy = enable(place, limits);
	if (!make(group, place, err)) {
		return false;
	}
	set_limits(group, limits, &wanted);
	(void)enable(group->fd, limits);
	group->is_open = true;
	return true;
}

void limit_group_usage(int group_fd, struct group_usage *out)
{
	*out = (struct group_usage){
		.cpu_ms = cgroup_read_key(group_fd, "cpu.stat", "usage_usec") / 1000};
	out->has_memory = cgroup_read(group_fd, "memory.current", &out->memory_bytes);
	if (out->has_memory && !cgroup_read(group_fd, "memory.peak", &out->peak_bytes)) {
		out->peak_bytes = out->memory_bytes; // before Linux 5.19
	}
	out->has_processes = cgroup_read(group_fd, "pids.current", &out->processes);
}

/* ---- processes of other namespaces ---- */

/* Removes the cgroups in it that nobody has locked, if they are empty or `kills`. */
static void remove_unlocked(int group_fd, bool kills)
{
	int fd = openat(group_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	while (folder && (entry = readdir(folder)) != NULL) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.') {
			continue;
		}
		ATTR_CLEANUP(fd_cleanup)
		int inner = openat(
			group_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0 && lock_file_try(inner, LOCK_ALONE) == LOCK_TAKEN) {
			if (kills) {
				cgroup_kill(inner);
			}
			unlinkat(group_fd, entry->d_name, AT_REMOVEDIR);
		}
	}
	if (folder) {
		closedir(folder);
	} else {
		fd_close(&fd);
	}
}

/* While one is locked, its guard may still read what it has counted. */
void limit_group_clear(int group_fd)
{
	remove_unlocked(group_fd, false);
}

int limit_group_take(int group_fd, pid_t pid, int *out_lock)
{
	char name[NAME_SIZE];
	char number[32];
	limit_group_clear(group_fd);
	text_whole(name, sizeof(name), "acp-broker-%d", (int)pid);
	text_whole(number, sizeof(number), "%d", (int)pid);
	int fd = make_locked(group_fd, name);
	if (fd >= 0) {
		(void)!cgroup_write(fd, "memory.oom.group", "1"); // if memory is counted
	}
	if (fd >= 0 && cgroup_write(fd, "cgroup.procs", number)) {
		*out_lock = fd;
		return 0;
	}
	int errnum = errno;
	fd_close(&fd);
	unlinkat(group_fd, name, AT_REMOVEDIR);
	return errnum;
}

/* ---- the end ---- */

static bool path_of(int group_fd, char out[CGROUP_PATH_MAX + 32])
{
	char path[CGROUP_PATH_MAX];
	return cgroup_path(group_fd, path) &&
	       text_whole(out, CGROUP_PATH_MAX + 32, "%s%s", cgroup_mount(), path);
}

void limit_group_close(struct limit_group *group)
{
	char path[CGROUP_PATH_MAX + 32];
	if (!group->is_open) {
		return;
	}
	group->is_open = false;
	remove_unlocked(group->fd, true); // those of killed guards, which nobody else removes
	bool has_path = path_of(group->fd, path);
	lock_file_release(group->fd);
	fd_close(&group->fd);
	if (has_path) {
		rmdir(path); // fails if a guard still uses it; the last guard then removes it
	}
}

void limit_group_leave(int group_fd)
{
	char path[CGROUP_PATH_MAX + 32];
	if (path_of(group_fd, path) && lock_file_try(group_fd, LOCK_SHARED) == LOCK_TAKEN) {
		rmdir(path);
	}
}

bool limit_group_is_name(const char *name)
{
	return strncmp(name, LIMIT_GROUP_PREFIX, sizeof(LIMIT_GROUP_PREFIX) - 1) == 0;
}

void limit_group_end_left(int folder_fd, const char *name)
{
	struct stat about;
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &about) == 0 && about.st_uid == geteuid() &&
		lock_file_try(fd, LOCK_ALONE) == LOCK_TAKEN) {
		unlinkat(folder_fd, name, AT_REMOVEDIR);
	}
}
