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
 * The guard: parent, subreaper and undertaker of one process, as
 * base/process.h explains; and what broker, spawner and guard say to each
 * other, each over a SOCK_SEQPACKET pair, a packet a message. All of them are
 * forks of one program, so that structs are the format.
 */

#define GUARD_NAME "acp-guard" // what ps and pkill see, of the spawner too

/* Broker to spawner: starts a process. Comes with GUARD_FDS_MIN to _MAX descriptors. */
struct guard_request {
	uint64_t id;
	bool foreground;
	bool is_grouped; // has a cgroup of its own, where one can be had
	bool is_limited;
	struct process_limits limits; // where it is
	/* Which of stdin, stdout, stderr and the limit group follow the first two descriptors. */
	bool has_fds[4];
};
enum {
	GUARD_FD_CONTROL, // the guard's end of its socket to the broker
	GUARD_FD_LAUNCH,  // the memory file of launch_pack
	GUARD_FDS_MIN,
	GUARD_FD_GROUP = GUARD_FDS_MIN + 3,
	GUARD_FDS_MAX,
};

/* Spawner to broker: the guard of this request was killed, and nothing of its tree is left. */
struct guard_loss {
	uint64_t id;
};

/* Broker to guard. */
enum guard_command { GUARD_SIGNAL, GUARD_KILL_TREE, GUARD_FREEZE, GUARD_THAW };
struct guard_order {
	enum guard_command command;
	int signal;
};

/* Guard to broker, in the order that struct process_listener promises. */
enum guard_event {
	GUARD_STARTED,
	GUARD_FAILED,
	GUARD_EXITED,
	GUARD_EMPTIED,
	GUARD_FROZEN, // or not, with an error
	GUARD_THAWED,
	GUARD_LIMIT, // is reached, and nobody has ended: LIMIT_PROCESSES, once
};
struct guard_report {
	enum guard_event event;
	pid_t pid;             // GUARD_STARTED
	pid_t guard;           // GUARD_STARTED: who sends it
	int code;              // GUARD_EXITED
	int signal;            // GUARD_EXITED
	enum limit_kind limit; // GUARD_EXITED, GUARD_LIMIT
	struct process_usage usage;
	enum error_code error; // GUARD_FAILED, GUARD_FROZEN
	bool lacks_folder;     // GUARD_FAILED: by the reason DIRECTORY_NOT_FOUND
	/* Of the error; of GUARD_FROZEN without one, why it was done by signals, "" where not. */
	char text[ERROR_TEXT_MAX];
};

/* Sends a report, its text only where there is one. A broker that is gone is no error. */
void guard_send(int control_fd, const struct guard_report *report);
void guard_send_failure(int control_fd, const struct error *err);

/*
 * The life of a guard, in a child freshly forked by the spawner, all signals
 * blocked. Takes the request's descriptors over, `fds` being control, launch,
 * stdin, stdout, stderr, limit group (-1: none). Never returns.
 */
void guard_run(const struct guard_request *request, const int fds[GUARD_FDS_MAX],
	pid_t spawner_pid) ATTR_NORETURN;

#endif
