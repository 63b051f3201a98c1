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

/*
 * The broker's side of the spawner, for process.c; everyone else uses
 * base/process.h.
 *
 * There are two of them, forked when they are first needed but for the first:
 * the one for the background left the broker's session, the one for the
 * foreground stays in it, because a process that uses a user's terminal has
 * to, and can only inherit it. Both give the same two lines of defence.
 */
enum nest_kind { NEST_BACKGROUND, NEST_FOREGROUND, NEST_COUNT };

/* One forked spawner as the broker sees it. */
struct nest {
	struct spawner *spawner;
	enum nest_kind kind;
	pid_t pid;  // 0: there is none now, or it is remote
	int socket; // -1: there is none now
	ev_io io;   // struct guard_loss, and its death: nobody else holds the other end
	int stops;
};

struct spawner {
	struct ev_loop *loop; // NULL until attached
	bool is_remote;       // spawner_create_remote
	struct nest nests[NEST_COUNT];
	struct list processes; // of struct process
	uint64_t last_id;
	unsigned long long start_ticks; // when the first was forked; strays are younger
	ev_signal stopped;              // one of the two may have been
	ev_timer sweep;                 // runs while strays may be left
	int sweep_tries;
};

/*
 * Hands a request to the right spawner and forks it where there is none.
 * Where hundreds of starts are queued it waits for them, for a second at most.
 */
bool spawner_send(struct spawner *spawner, const struct guard_request *request,
	const int fds[GUARD_FDS_MAX], struct error *err) ATTR_NODISCARD;

/* Before anything is asked of it: it may have been stopped. */
void spawner_wake(const struct spawner *spawner, enum nest_kind kind);

/* process.c: this request's guard is gone and its tree with it. */
void process_guard_lost(struct spawner *spawner, uint64_t id);

/* process.c: what this kind of spawner had started will be swept; then: it has been. */
void process_mark_orphans(struct spawner *spawner, enum nest_kind kind);
void process_orphans_swept(struct spawner *spawner);

/*
 * The spawner itself, in a freshly forked child of the broker, all signals
 * blocked. Ends when `socket` was closed at the broker's end and all trees are
 * gone.
 */
void spawner_run(int socket, enum nest_kind kind) ATTR_NORETURN;

#endif
