/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIMIT_GROUP_H
#define BASE_LIMIT_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/cgroup.h"
#include "base/error.h"

/*
 * A cgroup whose limits apply to everything that one sandbox runs. A cgroup that contains processes
 * cannot have limited children, so we do not create the group in our own cgroup. We create it below
 * the nearest ancestor in which we may, and copy the limits of the cgroups in between to it. In the
 * group, each guard creates its own cgroup (base/freeze_group.h) for its process and all
 * descendants. So the usage of each can be read, and when memory runs out, the kernel kills one of
 * them as a whole.
 *
 * It is locked (flock) while it is open here. Whoever leaves it last removes it: this process, a
 * guard, or freeze_group_end_left after both were killed.
 */
#define LIMIT_GROUP_PREFIX "acp-broker-limits-" // then our pid and a number

struct group_limits {
	uint64_t memory_bytes;
	uint64_t processes;
	uint64_t cpus; // whole processors
};                     // 0: no limit of that kind

struct limit_group {
	bool is_open;
	int fd;
	/* Which of the requested limits are in force. */
	bool limits_memory;
	bool limits_processes;
	bool limits_cpus;
	bool is_busy; // a controller could not be enabled: the cgroup above has processes itself
};

/*
 * Fails if no limited cgroup can be made at all. Otherwise `group` says which limits could be set:
 * a controller may be missing. Blocks for some milliseconds.
 */
bool limit_group_open(struct limit_group *group, const struct group_limits *limits,
	struct error *err) ATTR_NODISCARD;

/* Kills the processes in it that have no guard. Does nothing if it is not open. */
void limit_group_close(struct limit_group *group);

struct group_usage {
	uint64_t cpu_ms;
	bool has_memory; // the next two are known
	uint64_t memory_bytes;
	uint64_t peak_bytes;
	bool has_processes;
	uint64_t processes;
};
void limit_group_usage(int group_fd, struct group_usage *out);

/*
 * Moves a process of another namespace into a cgroup of its own in the group. *out_lock is its
 * lock: keep it open as long as the process's guard lives, or another broker takes the cgroup for
 * an abandoned one. Returns an errno, or 0. limit_group_clear, or the next call, removes the
 * cgroup.
 */
int limit_group_take(int group_fd, pid_t pid, int *out_lock) ATTR_NODISCARD;

/* Removes the empty cgroups in the group that nobody holds locked. */
void limit_group_clear(int group_fd);

/* A guard has left the group: removes it if no process is in it and nobody holds its lock. */
void limit_group_leave(int group_fd);

/* For freeze_group_end_left: removes an abandoned group of this name if it is empty. */
bool limit_group_is_name(const char *name);
void limit_group_end_left(int folder_fd, const char *name);

#endif
