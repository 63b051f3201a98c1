/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_IN_FLIGHT_H
#define BROKER_SESSION_IN_FLIGHT_H

#include <stdbool.h>

#include "base/error.h"

enum { IN_FLIGHT_TEXT_MAX = 1024 };

struct peer;

/* What may be under way in an agent's sessions; to be added up. */
enum in_flight_kind {
	IN_FLIGHT_PROMPTS = 1,   // that the agent was given, and were not answered yet
	IN_FLIGHT_TERMINALS = 2, // of the ToolHost's, whose command runs
	IN_FLIGHT_ENDING = 4,    // such that were released, or whose command has ended: not all
	                         // they started is known to be gone
	IN_FLIGHT_CALLS = 8,     // requests of the agent's, or for it, but prompts; syncs of turns
	IN_FLIGHT_WAITING = 16,  // prompts that wait for the sync before them
};

/*
 * Lists what of these kinds is under way. False, and "": nothing is. A list that is too long is
 * cut and ends with "…".
 */
bool in_flight_describe(struct peer *peer, unsigned kinds, char text[IN_FLIGHT_TEXT_MAX]);

/*
 * Prompts or terminals have come or gone: other programs see what is under way (keeper_note_turn).
 * ERROR_UNAVAILABLE, as there, where a workspace is being brought back by hand just now; where
 * fewer are under way than before, never.
 */
bool in_flight_note(struct peer *peer, struct error *err);

/*
 * Waits until nothing of these kinds is under way, for pause-drain-timeout at most. done is
 * raised once, not before this returns; `left` is what still is, or NULL; borrowed. The
 * drain is over then.
 */
struct drain;
typedef void drain_done(void *data, const char *left);
struct drain *drain_start(struct peer *peer, unsigned kinds, drain_done *done, void *data);

/* Nobody waits any more. NULL is fine. */
void drain_destroy(struct drain *drain);

#endif
