/* SPDX-License-Identifier: MIT */
#include "base/freeze_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/fd.h"
#include "base/limit_group.h"
#include "base/lock_file.h"
#include "base/text.h"

#define NAME_PREFIX "acp-broker-" // then the guard's pid

enum {
	MAKE_TRIES = 10,
	MAKE_PAUSE_MS = 10,
	DEPTH_MAX = 32,      // of a cgroup, in a search for abandoned groups
	FOLDERS_MAX = 20000, // visited by such a search
	END_PAUSE_MS = 5,
};

static void name_group(char *out, size_t size, pid_t guard)
{
	snprintf(out, size, NAME_PREFIX "%d", (int)guard);
}

/*
 * Locks the group for our whole life. Fails if somebody took it for an abandoned one and removed
 * it.
 */
static bool hold(const struct freeze_group *group)
{
	return lock_file_try(group->fd, LOCK_ALONE) == LOCK_TAKEN &&
	       lock_file_is_current(group->fd, group->own_fd, group->name);
}

/* An existing group of this name is empty: its guard was killed, and we got the same pid. */
static bool make_group(struct freeze_group *group, struct error *err)
{
	int errnum = 0;
	name_group(group->name, sizeof(group->name), getpid());
	for (int i = 0; i < MAKE_TRIES; i++) {
		if (mkdirat(group->own_fd, group->name, 0755) != 0 && errno != EEXIST) {
			errnum = errno;
			break;
		}
		group->fd = openat(group->own_fd, group->name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (group->fd >= 0 && hold(group)) {
			return true;
		}
		errnum = errno;
		fd_close(&group->fd);
		poll(NULL, 0, MAKE_PAUSE_MS); // another process is about to remove it
	}
	return error_set_errno(err, errnum, "making the cgroup %s/%s",
		strcmp(group->own, "/") == 0 ? "" : group->own, group->name);
}

bool freeze_group_open(struct freeze_group *group, struct error *err)
{
	if (group->is_open) {
		return true;
	}
	if (!cgroup_path_of(getpid(), group->own) ||
		(group->own_fd = cgroup_open_own(group->own)) < 0) {
		return error_set(err, ERROR_UNAVAILABLE,
			"looking for our own cgroup: there is no cgroup v2 below /sys/fs/cgroup");
	}
	if (!make_group(group, err)) {
		fd_close(&group->own_fd);
		return false;
	}
	group->is_open = true;
	return true;
}

bool freeze_group_open_in(struct freeze_group *group, int limit_fd, struct error *err)
{
	/* We need our own file description: the lock of the other one ends with its holders. */
	group->own_fd = openat(limit_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->own_fd < 0 || !cgroup_path(group->own_fd, group->own)) {
		int errnum = errno;
		fd_close(&group->own_fd);
		return error_set_errno(err, errnum, "opening the cgroup that has the limits");
	}
	if (!make_group(group, err)) {
		fd_close(&group->own_fd);
		return false;
	}
	(void)!cgroup_write(group->fd, "memory.oom.group", "1"); // if memory is counted
	group->is_open = group->is_limited = true;
	return true;
}

bool freeze_group_set(struct freeze_group *group, bool is_frozen, struct error *err)
{
	if (cgroup_write(group->fd, "cgroup.freeze", is_frozen ? "1" : "0")) {
		group->is_frozen = is_frozen;
		return true;
	}
	int errnum = errno;
	return error_set_errno(err, errnum, "writing cgroup.freeze of %s/%s",
		strcmp(group->own, "/") == 0 ? "" : group->own, group->name);
}

void freeze_group_thaw(struct freeze_group *group)
{
	struct error err;
	if (group->is_open && group->is_frozen) {
		(void)!freeze_group_set(group, false, &err);
	}
}

/* ---- which processes are in it ---- */

static bool is_inside(const struct freeze_group *group, const char *path)
{
	size_t own_len = strcmp(group->own, "/") == 0 ? 0 : strlen(group->own);
	size_t name_len = strlen(group->name);
	if (strncmp(path, group->own, own_len) != 0 || path[own_len] != '/' ||
		strncmp(path + own_len + 1, group->name, name_len) != 0) {
		return false;
	}
	char after = path[own_len + 1 + name_len];
	return after == '\0' || after == '/';
}

/*
 * The first thread has ended but keeps its old cgroup: another thread shows where the process is.
 */
static pid_t other_thread(pid_t pid)
{
	char path[64];
	pid_t found = pid;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *folder = opendir(path);
	struct dirent *entry;
	while (folder && found == pid && (entry = readdir(folder)) != NULL) {
		long thread = strtol(entry->d_name, NULL, 10);
		found = thread > 0 ? (pid_t)thread : pid;
	}
	if (folder) {
		closedir(folder);
	}
	return found;
}

/* Returns false without an error if there was nothing to do. */
static bool take(struct freeze_group *group, const struct tree_process *process, struct error *err)
{
	char path[CGROUP_PATH_MAX];
	char text[16];
	pid_t pid = process->pid;
	if (!cgroup_path_of(process->state == 'Z' ? other_thread(pid) : pid, path) ||
		is_inside(group, path)) {
		return false;
	}
	if (strcmp(path, group->own) != 0) {
		return error_set(err, ERROR_UNAVAILABLE, "process %d is in another cgroup, %s",
			(int)pid, path);
	}
	snprintf(text, sizeof(text), "%d", (int)pid);
	if (!cgroup_write(group->fd, "cgroup.procs", text) && errno != ESRCH) {
		int errnum = errno;
		return error_set_errno(
			err, errnum, "moving process %d to another cgroup", (int)pid);
	}
	return true;
}

bool freeze_group_take(
	struct freeze_group *group, const struct tree *tree, size_t *out_taken, struct error *err)
{
	struct error problem = {0};
	size_t taken = 0;
	for (size_t i = 0; i < tree->count && problem.code == ERROR_NONE; i++) {
		if (tree->items[i].is_below && take(group, &tree->items[i], &problem)) {
			taken++;
		}
	}
	if (problem.code != ERROR_NONE) {
		*err = problem;
		return false;
	}
	*out_taken = taken;
	return true;
}

bool freeze_group_is_frozen(const struct freeze_group *group)
{
	char text[256] = "\n";
	ATTR_CLEANUP(fd_cleanup) int fd = openat(group->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text + 1, sizeof(text) - 2);
	return count > 0 && strstr(text, "\nfrozen 1\n") != NULL;
}

pid_t freeze_group_fork(const struct freeze_group *group, bool *out_is_inside)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	*out_is_inside = group->is_open;
	if (group->is_open) {
		args.cgroup = (unsigned)group->fd;
		pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (pid >= 0) {
			return pid;
		}
	}
	*out_is_inside = false;
	return fork();
}

/* ---- the end ---- */

void freeze_group_kill(const struct freeze_group *group)
{
	if (group->is_open) {
		cgroup_kill(group->fd);
	}
}

void freeze_group_kill_of(pid_t guard)
{
	char own[CGROUP_PATH_MAX];
	char name[40];
	int own_fd = cgroup_path_of(getpid(), own) ? cgroup_open_own(own) : -1;
	name_group(name, sizeof(name), guard);
	int fd = own_fd < 0 ? -1
	                    : openat(own_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		cgroup_kill(fd);
	}
	fd_close(&fd);
	fd_close(&own_fd);
}

/* A group with processes stays, because we may neither kill nor move them; but they continue. */
static void dissolve(int own_fd, const char *name)
{
	if (unlinkat(own_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		return;
	}
	int fd = openat(own_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!cgroup_write(fd, "cgroup.freeze", "0");
	}
	fd_close(&fd);
}

void freeze_group_close(struct freeze_group *group)
{
	if (group->is_open) {
		fd_close(&group->fd);
		dissolve(group->own_fd, group->name);
		if (group->is_limited) {
			limit_group_leave(group->own_fd);
		}
		fd_close(&group->own_fd);
		group->is_open = false;
	}
}

void freeze_group_remove_of(pid_t guard)
{
	char own[CGROUP_PATH_MAX];
	char name[40];
	int own_fd = cgroup_path_of(getpid(), own) ? cgroup_open_own(own) : -1;
	if (own_fd >= 0) {
		name_group(name, sizeof(name), guard);
		dissolve(own_fd, name);
	}
	fd_close(&own_fd);
}

/* ---- abandoned groups ---- */

static bool has_members(int fd)
{
	char byte;
	ATTR_CLEANUP(fd_cleanup) int procs_fd = openat(fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	return procs_fd >= 0 && read(procs_fd, &byte, 1) == 1;
}

/*
 * Only the guard that made the group holds its lock. Returns true if the group had processes and is
 * gone now.
 */
static bool end_left(int folder_fd, const char *name)
{
	struct stat about;
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &about) != 0 || about.st_uid != geteuid() ||
		lock_file_try(fd, LOCK_ALONE) != LOCK_TAKEN) {
		return false;
	}
	bool had_members = has_members(fd);
	(void)!cgroup_write(fd, "cgroup.freeze", "1"); // so that no process escapes by forking
	for (int ms = 0; ms < FREEZE_GROUP_END_MS; ms += END_PAUSE_MS) {
		cgroup_kill(fd);
		if (unlinkat(folder_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
			return had_members;
		}
		poll(NULL, 0, END_PAUSE_MS);
	}
	(void)!cgroup_write(fd, "cgroup.freeze", "0"); // processes that cannot be killed continue
	return false;
}

static bool is_guards_name(const char *name)
{
	size_t len = sizeof(NAME_PREFIX) - 1;
	return strncmp(name, NAME_PREFIX, len) == 0 && name[len] != '\0' &&
	       strspn(name + len, "0123456789") == strlen(name + len);
}

struct visit {
	int folders;
	size_t ended;
};

static void visit_below(struct visit *visit, int fd, int depth) // closes fd
{
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	while (folder && visit->folders < FOLDERS_MAX && (entry = readdir(folder)) != NULL) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.') {
			continue;
		}
		visit->folders++;
		if (is_guards_name(entry->d_name)) {
			visit->ended += end_left(dirfd(folder), entry->d_name) ? 1 : 0;
		} else if (depth < DEPTH_MAX) {
			visit_below(visit,
				openat(dirfd(folder), entry->d_name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
				depth + 1);
		}
		if (limit_group_is_name(entry->d_name)) {
			limit_group_end_left(dirfd(folder), entry->d_name);
		}
	}
	if (folder) {
		closedir(folder);
	}
}

size_t freeze_group_end_left(void)
{
	struct visit visit = {0};
	const char *mount = cgroup_mount();
	if (*mount) {
		visit_below(&visit, open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC), 0);
	}
	return visit.ended;
}
