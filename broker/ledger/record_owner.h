/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_OWNER_H
#define BROKER_LEDGER_RECORD_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Who holds the lock of a session record (broker/ledger/record.h). The lock file names a process;
 * that it lives, and holds the lock, is read from /proc, so that a process number that was
 * given to somebody else is never taken for a broker. May block.
 */
struct record_owner {
	bool is_held;    // the lock is held, by whomever
	pid_t pid;       // 0: not known
	int pid_fd;      // its folder in /proc; -1: not known
	bool is_session; // it runs a session; else it finishes what another has begun
	/* Whoever had it last, if it is not held, wanted to finish it; and when the lock was
	 * taken, or that begun: CLOCK_REALTIME in ms. */
	bool was_finishing;
	long long noted_ms;
};

/* Looks; takes no lock where the file names who had it. Never fails: what is not known is not. */
void record_owner_find(int folder_fd, const char *id, struct record_owner *owner);

/*
 * Whether the owner holds a lock on this file beside the record: looks, takes none. False for a
 * process that is not known.
 */
bool record_owner_holds(const struct record_owner *owner, int folder_fd, const char *name);
void record_owner_finish(struct record_owner *owner);

/*
 * Asks the owner to end, as an editor that goes away does (SIGTERM). ERROR_DENIED where it is not
 * known to be a broker that runs a session: then nothing was sent to anybody.
 */
bool record_owner_stop(const struct record_owner *owner, struct error *err) ATTR_NODISCARD;

/* The lock is ours: says so in its file. `is_session` as above. */
void record_owner_note(int lock_fd, bool is_session);

#endif
