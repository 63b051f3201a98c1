/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_OWNER_H
#define BROKER_LEDGER_RECORD_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Who holds the lock of a session record (broker/ledger/record.h). The lock file names a process.
 * /proc shows whether that process lives and holds the lock, so a reused process id is never taken
 * for a broker. May block.
 */
struct record_owner {
	bool is_held;    // somebody holds the lock
	pid_t pid;       // 0: unknown
	int pid_fd;      // its folder in /proc; -1: unknown
	bool is_session; // it runs a session; false: it finishes another broker's work
	/*
	 * If no process holds the lock: whether the last holder only finished the record. noted_ms
	 * is the time at which the lock was taken, or at which finishing began: CLOCK_REALTIME in
	 * ms.
	 */
	bool was_finishing;
	long long noted_ms;
};

/*
 * Takes no lock, unless the file names no process. Never fails: facts that it cannot find stay
 * unknown.
 */
void record_owner_find(int folder_fd, const char *id, struct record_owner *owner);

/*
 * Whether the owner holds a lock on this file beside the record. Takes no lock. False for an
 * unknown process.
 */
bool record_owner_holds(const struct record_owner *owner, int folder_fd, const char *name);
void record_owner_finish(struct record_owner *owner);

/*
 * Asks the owner to end, like an editor that goes away (SIGTERM). ERROR_DENIED, and no signal is
 * sent, if it is not certain that the owner is a broker that runs a session.
 */
bool record_owner_stop(const struct record_owner *owner, struct error *err) ATTR_NODISCARD;

/* Call it after taking the lock: writes this process into the lock file. `is_session` as above. */
void record_owner_note(int lock_fd, bool is_session);

#endif
