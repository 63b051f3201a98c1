/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOCK_FILE_H
#define BASE_LOCK_FILE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"

/*
 * Locks between processes, by flock(2) of a file or a folder. The kernel gives a lock up when the
 * last descriptor of that opening is closed, also of a process that was killed. What a lock that
 * somebody else has means, and what the user is told, is the caller's.
 */
enum lock_state {
	LOCK_TAKEN,
	LOCK_ELSEWHERE, // somebody else has it
	LOCK_FAILED,    // errno says why
};
enum lock_kind { LOCK_ALONE, LOCK_SHARED };

/* Opens a file to lock, made where it is missing, for this user alone. -1 with errno. */
int lock_file_open(int folder_fd, const char *name) ATTR_NODISCARD;

/* Takes the lock, or changes its kind, without waiting. */
enum lock_state lock_file_try(int fd, enum lock_kind kind) ATTR_NODISCARD;

void lock_file_release(int fd); // the descriptor stays open

/* Whether a locked file is still the one of that name: its last owner may have removed it. */
bool lock_file_is_current(int fd, int folder_fd, const char *name);

#define LOCK_NO_DEADLINE LLONG_MAX

/* How long to wait; looks every look_ms. */
struct lock_wait {
	int look_ms;
	long long deadline_ms;           // of clock_now_ms; or LOCK_NO_DEADLINE
	const atomic_bool *is_cancelled; // may be NULL
	void (*on_wait)(void);           // once, before the first wait; may be NULL
};

/*
 * Waits for the lock alone. LOCK_ELSEWHERE where the deadline has passed or it was cancelled. It
 * tries at least once. Blocks: for a worker thread, or a command.
 */
enum lock_state lock_file_wait(int fd, const struct lock_wait *wait) ATTR_NODISCARD;

#endif
