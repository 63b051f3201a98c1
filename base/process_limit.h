/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_LIMIT_H
#define BASE_PROCESS_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * What a process may use, by setrlimit(2): of each process by itself, the number of processes of
 * the whole user. The limits of a whole tree are those of a cgroup (base/cgroup.h).
 */
struct process_limits {
	uint64_t open_files;
	uint64_t file_bytes;
	uint64_t cpu_seconds;
	uint64_t user_processes; // and threads, all that the user has; nothing for root
};                               // 0: none of that kind

/* What a process has met. */
enum limit_kind {
	LIMIT_NONE,
	LIMIT_MEMORY,
	LIMIT_PROCESSES,
	LIMIT_FILE_SIZE,
	LIMIT_CPU_TIME,
	LIMIT_KIND_COUNT,
};

/* Its key in a profile; static text. */
const char *limit_key(enum limit_kind kind);

/* What a process and the children that it has waited for used, or all of its cgroup. */
struct process_usage {
	bool is_known;
	uint64_t cpu_ms;
	uint64_t peak_bytes; // of memory: all of the cgroup, or the largest process
};

/*
 * In a child before its exec. A limit that is higher than the one in force stays what it is. False
 * with errno.
 */
bool limits_set(const struct process_limits *limits) ATTR_NODISCARD;

bool limits_are_set(const struct process_limits *limits); // any of them

/*
 * Which limit a wait status tells of. A shell says 128 + SIGNAL of the command that it ran last,
 * and so can any program: that counts where the processor time that was used bears it out.
 * `was_killed`: SIGKILL was of our sending.
 */
enum limit_kind limits_reached(
	const struct process_limits *limits, int wait_status, uint64_t cpu_ms, bool was_killed);

/* How many processes and threads a user has now, as the kernel counts them for RLIMIT_NPROC. */
uint64_t limits_count_tasks(unsigned user);

#endif
