/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_IN_FLIGHT_H
#define BROKER_SESSION_IN_FLIGHT_H

#include <stdbool.h>

#include "base/error.h"

enum { IN_FLIGHT_TEXT_MAX = 1024 };

struct peer;

/* The kinds of work that may be in progress in an agent's sessions; add them up. */
enum in_flight_kind {
	IN_FLIGHT_PROMPTS = 1,   // sent to the agent and not answered yet
	IN_FLIGHT_TERMINALS = 2, // of the ToolHost; their command runs
	IN_FLIGHT_ENDING = 4,    // terminals that were released, or whose command has ended, while
	                         // some of their processes may still run
	IN_FLIGHT_CALLS = 8,     // other requests from or to the agent; syncs of turns
	IN_FLIGHT_WAITING = 16,  // prompts that wait for the sync before them
};

/*
 * Lists the work of these kinds that is in progress. False, with "" as text, if there is none. A
 * list that is too long is cut and ends with "…".
 */
bool in_flight_describe(struct peer *peer, unsigned kinds, char text[IN_FLIGHT_TEXT_MAX]);

/*
 * Call this when prompts or terminals have begun or ended: it tells the sandbox whether a turn is
 * open, and other programs which work is in progress (keeper_note_turn). Fails with
 * ERROR_UNAVAILABLE, as that does, while a user's command restores a workspace; never fails if
 * there is less work than before.
 */
bool in_flight_note(struct peer *peer, struct error *err);

/*
 * Commands that the agent runs by the broker's own MCP server count as terminals; each counts from
 * +1 to -1. +1 fails, and does not count, where in_flight_note does.
 */
bool in_flight_add_command(struct peer *peer, int change, struct error *err);
bool in_flight_has_commands(const struct peer *peer);

/*
 * Waits until no work of these kinds is in progress, for at most pause-drain-timeout. Calls done
 * once, not before this returns. `left` is the work still in progress, borrowed, or NULL. The drain
 * is freed then.
 */
struct drain;
typedef void drain_done(void *data, const char *left);
struct drain *drain_start(struct peer *peer, unsigned kinds, drain_done *done, void *data);

/* Cancels the wait. NULL is fine. */
void drain_destroy(struct drain *drain);

#endif
