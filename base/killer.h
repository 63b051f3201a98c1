/* SPDX-License-Identifier: MIT */
#ifndef BASE_KILLER_H
#define BASE_KILLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Kills everything below the calling process in repeated attempts, with longer and longer pauses
 * between them. The caller has one thread and is a subreaper. For the poll loops of guard and
 * spawner. Zero-initialise.
 */
struct killer {
	bool is_on;
	bool found_nothing; // the last attempt found no process
	int attempts;
	int pause_ms;
	long long next_ms;
};

enum {
	REAP_MAX = 256
}; // zombies reaped at a time: some programs make them faster than we can reap them

/* Which children to spare, and how the caller reaps its children. */
struct killer_ground {
	const pid_t *spared; // children to leave alone, with their descendants
	size_t spared_count;
	bool (*reap)(void *data); // reaps ended children; false if no children are left
	void *data;
};

void killer_start(struct killer *killer); // begins anew
void killer_delay(struct killer *killer); // by one short pause
void killer_stop(struct killer *killer);

/* Makes an attempt if one is due. Returns how many ms to sleep until the next one; -1: no limit. */
int killer_step(struct killer *killer, const struct killer_ground *ground);

#endif
