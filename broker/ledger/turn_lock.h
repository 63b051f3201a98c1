/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_TURN_LOCK_H
#define BROKER_LEDGER_TURN_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Whether a broker's agent is working in a workspace. ID.turn lies beside the record
 * (broker/ledger/record.h). While a prompt or a terminal of the agent is in progress, the record's
 * broker locks this file (flock) and writes into it which. A user's command that rolls the
 * workspace back takes these locks of all running brokers and holds them until it is done, so that
 * no prompt begins. A lock ends with its process.
 */
enum { TURN_TEXT_MAX = 1024 };

#define TURN_LOCK_ENDING ".turn"

/* Work in progress, for people: "a prompt in session s, term-1 in session s". */
struct turn_text {
	const char *list;
	bool is_lasting; // false: all of it is about to end by itself
};

/* ---- for the broker that has the record ---- */

struct turn_lock {
	int fd; // of the file; -1: not opened yet
	bool is_held;
};

void turn_lock_init(struct turn_lock *lock);
void turn_lock_finish(struct turn_lock *lock); // releases the lock

/*
 * Takes the lock unless it is held already, and writes down the work in progress. ERROR_UNAVAILABLE
 * with reason ROLLBACK_IN_PROGRESS if somebody is rolling the workspace back. Does not block.
 */
bool turn_lock_take(struct turn_lock *lock, const char *state_folder, const char *record_id,
	const struct turn_text *text, struct error *err) ATTR_NODISCARD;
void turn_lock_let_go(struct turn_lock *lock);

/* ---- for programs that look ---- */

struct record_owner;

enum turn_state {
	TURN_IDLE,
	TURN_OPEN,
	TURN_UNKNOWN, // the broker's process is not visible from here
};

/*
 * Whether the broker that has the record holds its turn lock, and what it wrote there ("" if it
 * does not hold it). Takes no lock, because that would make a broker refuse a prompt that begins at
 * that moment.
 */
enum turn_state turn_lock_look(
	int folder_fd, const char *id, const struct record_owner *owner, char text[TURN_TEXT_MAX]);

/* ---- for a rollback ---- */

struct turn_locks {
	int *fds; // owned
	size_t count;
};

struct turn_search {
	const char *state_folder;
	const char *root, *real_root;    // of the workspace
	int timeout_ms;                  // for work that is about to end
	const atomic_bool *is_cancelled; // set once nobody waits any more; may be NULL
};

/*
 * Takes the turn locks of all running brokers that use this workspace: all or none.
 * ERROR_UNAVAILABLE with reason TOOLS_IN_FLIGHT if work is in progress; the text says what and
 * whose. The caller holds the store's lock, for which later sessions wait. Blocks.
 */
bool turn_locks_take(struct turn_locks *locks, const struct turn_search *search,
	struct error *err) ATTR_NODISCARD;
void turn_locks_finish(struct turn_locks *locks); // releases the locks

#endif
