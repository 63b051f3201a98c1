/* SPDX-License-Identifier: MIT */
#ifndef BASE_KILLER_H
#define BASE_KILLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Kills everything below the calling process, which has one thread and is a
 * subreaper, in attempts that come after longer and longer pauses. For the
 * poll loops of guard and spawner. Zero-initialise.
 */
struct killer {
	bool is_on;
	bool found_nothing; // the last attempt did
	int attempts;
	int pause_ms;
	long long next_ms;
};

enum { REAP_MAX = 256 }; // zombies collected at a time: some make them faster than one can wait

/* What the caller owns and how it collects its children. */
struct killer_ground {
	const pid_t *spared; // children to leave alone, with what is below them
	size_t spared_count;
	bool (*reap)(void *data); // waits for who has ended; false when no children are left
	void *data;
};

void killer_start(struct killer *killer); // begins anew
void killer_delay(struct killer *killer); // by one short pause
void killer_stop(struct killer *killer);

/* Makes an attempt if one is due. Returns how many ms to sleep until the next; -1: for ever. */
int killer_step(struct killer *killer, const struct killer_ground *ground);

#endif
