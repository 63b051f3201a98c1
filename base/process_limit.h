/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROCESS_LIMIT_H
#define BASE_PROCESS_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

/*
 * Limits of a process, by setrlimit(2). They apply to each process by itself; the number of
 * processes applies to the whole user. The limits of a whole tree are those of a cgroup
 * (base/cgroup.h).
 */
struct process_limits {
	uint64_t open_files;
	uint64_t file_bytes;
	uint64_t cpu_seconds;
	uint64_t user_processes; // processes and threads of the user; no limit for root
};                               // 0: no limit of that kind

/* The kind of limit that a process reached. */
enum limit_kind {
	LIMIT_NONE,
	LIMIT_MEMORY,
	LIMIT_PROCESSES,
	LIMIT_FILE_SIZE,
	LIMIT_CPU_TIME,
	LIMIT_KIND_COUNT,
};

/* The limit's key in a profile; static text. */
const char *limit_key(enum limit_kind kind);

/* The usage of a process and the children that it has waited for, or of its whole cgroup. */
struct process_usage {
	bool is_known;
	uint64_t cpu_ms;
	uint64_t peak_bytes; // of memory: the whole cgroup, or the largest process
};

/*
 * Sets the limits, in a child before its exec. If the limit in force is lower than ours, it stays.
 * False with errno.
 */
bool limits_set(const struct process_limits *limits) ATTR_NODISCARD;

bool limits_are_set(const struct process_limits *limits); // any of them

/*
 * Which limit a wait status points to. A shell exits with 128 + SIGNAL of its last command, and so
 * can any program: that counts only if the processor time used confirms it. `was_killed`: we sent
 * the SIGKILL.
 */
enum limit_kind limits_reached(
	const struct process_limits *limits, int wait_status, uint64_t cpu_ms, bool was_killed);

/* How many processes and threads a user has now, as the kernel counts them for RLIMIT_NPROC. */
uint64_t limits_count_tasks(unsigned user);

/* Whether it counts those of each user namespace by themselves: since Linux 5.14. */
bool limits_count_by_namespace(void);

#endif
