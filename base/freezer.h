/* SPDX-License-Identifier: MIT */
#ifndef BASE_FREEZER_H
#define BASE_FREEZER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/freeze_group.h"
#include "base/killer.h"
#include "base/tree.h"

/*
 * Stops everything below the calling process, which has one thread and is a subreaper, so that it
 * can go on later. By a cgroup (base/freeze_group.h) where that can be had: all are taken in, until
 * two looks one after the other find nobody outside. Else by SIGSTOP in rounds, until two looks
 * show the same processes, none of which runs; what was stopped before stays so afterwards. For
 * the poll loop of the guard. Zero-initialise.
 */
enum freezer_state { FREEZER_OFF, FREEZER_STOPPING, FREEZER_FROZEN, FREEZER_FAILED };

struct freezer {
	enum freezer_state state;
	struct freeze_group group; // stays, with who is in it, from the first freeze to the end
	bool is_by_signals;
	char why_signals[ERROR_TEXT_MAX]; // by_signals: why no cgroup could be had
	struct tree looks[2];             // by turns; of the last two rounds
	struct tree before;               // who was stopped before the first round
	int rounds;
	int growths;      // rounds that found somebody new
	bool is_quiet;    // the last look showed nobody who runs, or is outside
	bool has_changed; // somebody has ended since
	long long next_ms;
	long long until_ms;
	struct error err; // FREEZER_FAILED: who goes on, and why
};

/* The first part of it is the cgroup's. */
enum { FREEZE_MAX_MS = 5000, FREEZE_GROUP_MAX_MS = 1500 };

void freezer_finish(struct freezer *freezer); // lets nobody go on; the cgroup stays

/* Nobody is left, or who is cannot be killed: that goes on, and the cgroup is removed. */
void freezer_close(struct freezer *freezer);

/* Begins; nothing where it has begun. */
void freezer_start(struct freezer *freezer);

/* Somebody has ended and was collected: who it left behind may run. */
void freezer_note_end(struct freezer *freezer);

/*
 * Makes a round if one is due. Returns how many ms to sleep until the next; -1: for ever, the state
 * says why. One that has failed has let everybody go on.
 */
int freezer_step(struct freezer *freezer, const struct killer_ground *ground);

/* Lets everybody go on, children before their parents: no shell sees a job stopped. */
void freezer_thaw(struct freezer *freezer);

#endif
