/* SPDX-License-Identifier: MIT */
#ifndef BASE_LOCK_FILE_H
#define BASE_LOCK_FILE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/attr.h"

/*
 * Locks between processes, by flock(2) on a file or folder. The kernel releases a lock when the
 * last file descriptor of that open file description is closed, also if its process is killed. The
 * caller decides what a lock held by somebody else means, and what to tell the user.
 */
enum lock_state {
	LOCK_TAKEN,
	LOCK_ELSEWHERE, // another open file description has it
	LOCK_FAILED,    // errno says why
};
enum lock_kind { LOCK_ALONE, LOCK_SHARED };

/* Opens a file to lock, and creates it if it is missing, for this user alone. -1 with errno. */
int lock_file_open(int folder_fd, const char *name) ATTR_NODISCARD;

/* Takes the lock, or changes its kind, without waiting. */
enum lock_state lock_file_try(int fd, enum lock_kind kind) ATTR_NODISCARD;

void lock_file_release(int fd); // the file descriptor stays open

/* Whether a locked file is still the one with that name: its last owner may have removed it. */
bool lock_file_is_current(int fd, int folder_fd, const char *name);

#define LOCK_NO_DEADLINE LLONG_MAX

/* How long to wait. The wait retries every look_ms. */
struct lock_wait {
	int look_ms;
	long long deadline_ms;           // of clock_now_ms; or LOCK_NO_DEADLINE
	const atomic_bool *is_cancelled; // may be NULL
	void (*on_wait)(void);           // called once, before the first wait; may be NULL
};

/*
 * Waits for the exclusive lock. Returns LOCK_ELSEWHERE if the deadline passed or is_cancelled was
 * set. Tries at least once. Blocks: for a worker thread, or a command.
 */
enum lock_state lock_file_wait(int fd, const struct lock_wait *wait) ATTR_NODISCARD;

#endif
