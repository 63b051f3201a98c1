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
 * Stops every process below the calling process, so that they can continue later. The caller has
 * one thread and is a subreaper. If possible it uses a cgroup (base/freeze_group.h): it moves
 * processes into the cgroup until two scans in a row find none outside. Otherwise it sends SIGSTOP
 * in rounds, until two scans show the same processes and none of them runs; a process that was
 * already stopped stays stopped afterwards. For the poll loop of the guard. Zero-initialise.
 */
enum freezer_state { FREEZER_OFF, FREEZER_STOPPING, FREEZER_FROZEN, FREEZER_FAILED };

struct freezer {
	enum freezer_state state;
	struct freeze_group group; // stays, with its processes, from the first freeze to the end
	bool is_by_signals;
	char why_signals[ERROR_TEXT_MAX]; // if is_by_signals: why no cgroup could be used
	struct tree looks[2];             // the scans of the last two rounds, in turn
	struct tree before;               // the processes that were stopped before the first round
	int rounds;
	int growths;      // rounds that found a new process
	bool is_quiet;    // the last scan found no running process, and none outside of the cgroup
	bool has_changed; // a process has ended since
	long long next_ms;
	long long until_ms;
	struct error err; // FREEZER_FAILED: why, and which process could not be stopped, if known
};

/* The limit of a whole freeze, and of its first part, which uses the cgroup. */
enum { FREEZE_MAX_MS = 5000, FREEZE_GROUP_MAX_MS = 1500 };

void freezer_finish(struct freezer *freezer); // lets no process continue; keeps the cgroup

/*
 * For the end, when no process is left, or the remaining ones cannot be killed. Lets these
 * continue, and removes the cgroup.
 */
void freezer_close(struct freezer *freezer);

/* Begins to freeze; does nothing if it has begun. */
void freezer_start(struct freezer *freezer);

/* A process ended and was reaped: its children may be running. */
void freezer_note_end(struct freezer *freezer);

/*
 * Makes a round if one is due. Returns how many ms to sleep until the next one. -1 means: sleep
 * without a limit, the state says why. After FREEZER_FAILED all processes run again.
 */
int freezer_step(struct freezer *freezer, const struct killer_ground *ground);

/*
 * Lets all processes continue, children before their parents, so that no shell sees a stopped job.
 */
void freezer_thaw(struct freezer *freezer);

#endif
