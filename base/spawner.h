/* SPDX-License-Identifier: MIT */
#ifndef BASE_SPAWNER_H
#define BASE_SPAWNER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/list.h"
#include "base/spawner_child.h"

/*
 * The broker's side of the spawner, for process.c; everyone else uses base/process.h.
 *
 * There are two spawners. The background one is forked at the start and leaves the broker's
 * session. The foreground one is forked when it is first needed and stays in the session: a process
 * that uses the user's terminal must be in it, and can only inherit it. Both give the same two
 * lines of defence.
 */
/* One forked spawner as the broker sees it. */
struct nest {
	struct spawner *spawner;
	enum nest_kind kind;
	pid_t pid;  // 0: not running, or remote
	int socket; // -1: not running
	ev_io io; // receives struct guard_loss and the spawner's death: nobody else holds the other
	          // end
	int stops;
};

struct spawner {
	struct ev_loop *loop; // NULL until attached
	bool is_remote;       // spawner_create_remote
	struct nest nests[NEST_COUNT];
	int will_fd;           // of the last will, for a further spawner; -1: none
	int will_err;          // its stderr; -1: none
	struct list processes; // of struct process
	uint64_t last_id;
	unsigned long long start_ticks; // when the first spawner was forked; strays are younger
	ev_signal stopped;              // SIGCHLD: a spawner may have been stopped
	ev_timer sweep;                 // runs while strays may be left
	int sweep_tries;
};

/*
 * Sends a request to the right spawner, and forks that spawner if it is not running. If hundreds of
 * starts are queued, waits for at most a second.
 */
bool spawner_send(struct spawner *spawner, const struct guard_request *request,
	const int fds[GUARD_FDS_MAX], struct error *err) ATTR_NODISCARD;

/* Call it before each request: the spawner may have been stopped. */
void spawner_wake(const struct spawner *spawner, enum nest_kind kind);

/* process.c: the guard of this request is gone, and its tree too. */
void process_guard_lost(struct spawner *spawner, uint64_t id);

/* process.c: first, the processes of this kind of spawner will be swept; then, they have been. */
void process_mark_orphans(struct spawner *spawner, enum nest_kind kind);
void process_orphans_swept(struct spawner *spawner);

#endif
