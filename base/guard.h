/* SPDX-License-Identifier: MIT */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process_limit.h"

/*
 * The guard is the parent and subreaper of one process and ends whatever that process leaves
 * behind; base/process.h explains it. This header also has the messages between broker, spawner and
 * guard. Each pair talks over a SOCK_SEQPACKET pair, one packet per message. All three are forks of
 * one program, so the messages are plain structs.
 */

#define GUARD_NAME "acp-guard" // the name in ps and pkill, of the spawner too

/* Broker to spawner: starts a process. Carries GUARD_FDS_MIN to GUARD_FDS_MAX file descriptors. */
struct guard_request {
	uint64_t id;
	bool foreground;
	bool owns_terminal; // as in struct process_spec
	bool is_grouped;    // gets its own cgroup if possible
	bool is_limited;
	struct process_limits limits; // if is_limited
	bool joins;                   // the broker moves the process into a limit group: GUARD_JOIN
	bool stays_outside;           // as in struct process_spec
	/*
	 * Not to be started now, but once the broker has gone and everything else has ended. It
	 * takes the place of an earlier one. Without a guard, and only of the background spawner.
	 * Of the optional file descriptors, only stderr may be there.
	 */
	bool is_will;
	bool is_revoked; // with is_will: nothing is to be started then
	/*
	 * Which of stdin, stdout, stderr, the limit group and the program follow the first two file
	 * descriptors.
	 */
	bool has_fds[5];
};
enum {
	GUARD_FD_CONTROL, // the guard's end of its socket to the broker
	GUARD_FD_LAUNCH,  // the memory file from launch_pack
	GUARD_FDS_MIN,
	GUARD_FD_ERR = GUARD_FDS_MIN + 2,
	GUARD_FD_GROUP = GUARD_FDS_MIN + 3,
	GUARD_FD_PROGRAM,
	GUARD_FDS_MAX,
};

/* Spawner to broker: the guard of this request was killed, and no process of its tree is left. */
struct guard_loss {
	uint64_t id;
};

/* Broker to guard. */
enum guard_command {
	GUARD_SIGNAL,
	GUARD_KILL_TREE,
	GUARD_FREEZE,
	GUARD_THAW,
	GUARD_JOINED, // the answer to GUARD_JOIN
};
struct guard_order {
	enum guard_command command;
	int signal; // of GUARD_JOINED: an errno, or 0
};

/* Guard to broker, in the order that struct process_listener promises. */
enum guard_event {
	GUARD_JOIN, // its process asks to be moved, and waits; the credentials have its pid here
	GUARD_STARTED,
	GUARD_FAILED,
	GUARD_EXITED,
	GUARD_EMPTIED,
	GUARD_FROZEN, // the answer to GUARD_FREEZE; on failure it has an error
	GUARD_THAWED,
	GUARD_LIMIT, // a limit is reached, and the process has not ended
};
struct guard_report {
	enum guard_event event;
	pid_t pid;             // GUARD_STARTED
	pid_t guard;           // GUARD_STARTED: the guard's own pid
	int code;              // GUARD_EXITED
	int signal;            // GUARD_EXITED
	enum limit_kind limit; // GUARD_EXITED, GUARD_LIMIT
	struct process_usage usage;
	enum error_code error; // GUARD_FAILED, GUARD_FROZEN
	bool lacks_folder;     // GUARD_FAILED: the reason is DIRECTORY_NOT_FOUND
	/*
	 * The error's text. For GUARD_FROZEN without an error: why signals were used instead of a
	 * cgroup, or "".
	 */
	char text[ERROR_TEXT_MAX];
};

/* Sends a report, with its text if it has one. It is no error if the broker is gone. */
void guard_send(int control_fd, const struct guard_report *report);
void guard_send_failure(int control_fd, const struct error *err);

/*
 * Runs a guard, in a child freshly forked by the spawner, with all signals blocked. Takes over the
 * request's file descriptors: `fds` are control, launch, stdin, stdout, stderr, limit group and
 * program (-1: none). Never returns.
 */
void guard_run(const struct guard_request *request, const int fds[GUARD_FDS_MAX],
	pid_t spawner_pid) ATTR_NORETURN;

#endif
