/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIMIT_GROUP_H
#define BASE_LIMIT_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/cgroup.h"
#include "base/error.h"

/*
 * A cgroup whose limits hold for all that one sandbox runs. It lies beside the cgroup in which we
 * are, below the nearest one where we may make it: a cgroup that has processes cannot have limited
 * ones below it. What the ones in between limit is taken over. The guards make their own groups in
 * it (base/freeze_group.h), one for each process that they start with all that it starts, so that
 * what each has used can be read, and the kernel ends one of them as a whole where memory runs out.
 *
 * It is locked (flock) for as long as it is open here. It is removed by who leaves it last: we, a
 * guard, or, after both were killed, freeze_group_end_left.
 */
#define LIMIT_GROUP_PREFIX "acp-broker-limits-" // then our pid and a number

struct group_limits {
	uint64_t memory_bytes;
	uint64_t processes;
	uint64_t cpus; // whole ones
};                     // 0: none of that kind

struct limit_group {
	bool is_open;
	int fd;
	/* Of those that were wanted. */
	bool limits_memory;
	bool limits_processes;
	bool limits_cpus;
};

/*
 * Fails where there is none to be had at all. Else the limits that could be set are said in
 * `group`: a controller may be missing. Blocks for some milliseconds.
 */
bool limit_group_open(struct limit_group *group, const struct group_limits *limits,
	struct error *err) ATTR_NODISCARD;

/* Ends who is left in it without a guard. Nothing where it is not open. */
void limit_group_close(struct limit_group *group);

struct group_usage {
	uint64_t cpu_ms;
	bool has_memory; // of the next two
	uint64_t memory_bytes;
	uint64_t peak_bytes;
	bool has_processes;
	uint64_t processes;
};
void limit_group_usage(int group_fd, struct group_usage *out);

/* A guard has left it: removes it where nobody is there any more, nor holds it. */
void limit_group_leave(int group_fd);

/* One that was left, of that name: removed where nobody is there. For freeze_group_end_left. */
bool limit_group_is_name(const char *name);
void limit_group_end_left(int folder_fd, const char *name);

#endif
