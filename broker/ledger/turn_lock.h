/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_TURN_LOCK_H
#define BROKER_LEDGER_TURN_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Whether a broker's agent is at work in a workspace. Beside the record (broker/ledger/record.h)
 * lies ID.turn, locked (flock) by the record's broker while a prompt or a terminal of the agent's
 * is under way, and in it stands which. Who brings the workspace back by hand has the locks of all
 * brokers that live and keep it meanwhile, so that no prompt begins. A lock ends with its process.
 */
enum { TURN_TEXT_MAX = 1024 };

#define TURN_LOCK_ENDING ".turn"

/* What is under way, for people: "a prompt in session s, term-1 in session s". */
struct turn_text {
	const char *list;
	bool is_lasting; // else all of it is about to end by itself
};

/* ---- of the broker that has the record ---- */

struct turn_lock {
	int fd; // of the file; -1: it was not opened yet
	bool is_held;
};

void turn_lock_init(struct turn_lock *lock);
void turn_lock_finish(struct turn_lock *lock); // lets go

/*
 * Takes the lock, where it is not held already, and writes down what is under way.
 * ERROR_UNAVAILABLE with reason ROLLBACK_IN_PROGRESS where somebody brings the workspace back just
 * now. Waits for nothing.
 */
bool turn_lock_take(struct turn_lock *lock, const char *state_folder, const char *record_id,
	const struct turn_text *text, struct error *err) ATTR_NODISCARD;
void turn_lock_let_go(struct turn_lock *lock);

/* ---- of who looks ---- */

struct record_owner;

enum turn_state {
	TURN_IDLE,
	TURN_OPEN,
	TURN_UNKNOWN, // the broker cannot be seen from here
};

/*
 * Whether the broker that has the record holds its turn's lock, and what it wrote there ("" unless
 * it does). Takes no lock: a prompt that began just then would be refused.
 */
enum turn_state turn_lock_look(
	int folder_fd, const char *id, const struct record_owner *owner, char text[TURN_TEXT_MAX]);

/* ---- of who brings a workspace back ---- */

struct turn_locks {
	int *fds; // owned
	size_t count;
};

struct turn_search {
	const char *state_folder;
	const char *root, *real_root;    // of the workspace
	int timeout_ms;                  // for what is about to end
	const atomic_bool *is_cancelled; // nobody waits for that any more; may be NULL
};

/*
 * Takes the locks of all brokers that live and keep this workspace: all or none. ERROR_UNAVAILABLE
 * with reason TOOLS_IN_FLIGHT where something is under way, saying what and whose. With the
 * store's lock: what opens a session later waits for that. Blocks.
 */
bool turn_locks_take(struct turn_locks *locks, const struct turn_search *search,
	struct error *err) ATTR_NODISCARD;
void turn_locks_finish(struct turn_locks *locks); // lets go

#endif
