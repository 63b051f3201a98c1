/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_ORDER_H
#define BROKER_RELAY_RELAY_ORDER_H

#include "broker/session/hop.h"

/*
 * What the editor sends of a session behind a request that waits keeps its place: all that names
 * the session waits, too, and goes on in its order
 * - once a session/load or session/resume was answered: the session may be another agent's than it
 *   seemed to be - another broker's record may have it, or its own agent has ended and is started
 *   for this -, and in a mode that is not known before;
 * - once no prompt of the session waits any more, for its sync (relay_turn.h) or for the agent's
 *   mode (mode_guard.h). Prompts with nothing but prompts before them wait there as well, not here.
 * Only session/cancel, and the editor's answers, go ahead. session/close and session/delete wait
 * behind no prompt: those that are before them are answered.
 */

/* A session/load or session/resume has come. Nothing where another request is meant. */
void relay_order_begin(struct relay *relay, const struct call *call);

/* A prompt of the session waits. */
void relay_order_begin_prompt(struct relay *relay, const struct session *session);

/* A request of the editor's, or a notification: true where it waits, or was answered. */
bool relay_order_holds(struct relay *relay, const struct call *call);

/* Whether a session/load or session/resume of the session is not answered yet. */
bool relay_order_is_opening(struct relay *relay, const struct session *session);

/* A request of the editor's was answered: what waits goes on, soon. */
void relay_order_note(struct relay *relay, struct span id);
void relay_order_look(struct relay *relay); // the same: a prompt that waited went to its agent

/* session/cancel: prompts that wait are answered. True where there were any. */
bool relay_order_cancel(struct relay *relay, const struct call *call);

void relay_order_finish(struct relay *relay); // frees all

#endif
