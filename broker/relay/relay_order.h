/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_ORDER_H
#define BROKER_RELAY_RELAY_ORDER_H

#include "broker/session/hop.h"

/*
 * Keeps the editor's messages of a session in order. While a request waits, all later messages that
 * name its session wait too. They go on, in their order,
 * - after a session/load or session/resume was answered. Until then nobody knows which agent will
 *   have the session: another broker's record may have it, or a new agent may replace one that has
 *   ended. Nobody knows the session's mode either;
 * - after no prompt of the session waits any more, for its sync (relay_turn.h) or for the agent's
 *   mode (mode_guard.h). Prompts with only prompts before them wait there as well, not here.
 *
 * Only session/cancel and the editor's answers overtake. session/close and session/delete do not
 * wait behind prompts: the waiting prompts are answered.
 */

/* A session/load or session/resume has arrived. Does nothing for other requests. */
void relay_order_begin(struct relay *relay, const struct call *call);

/* A prompt of the session waits. */
void relay_order_begin_prompt(struct relay *relay, const struct session *session);

/* Takes a request or notification of the editor. True if it waits or was answered. */
bool relay_order_holds(struct relay *relay, const struct call *call);

/* Whether a session/load or session/resume of the session is still unanswered. */
bool relay_order_is_opening(struct relay *relay, const struct session *session);

/* A request of the editor was answered: waiting messages go on soon. */
void relay_order_note(struct relay *relay, struct span id);
void relay_order_look(struct relay *relay); // the same, because a waiting prompt went to its agent

/* session/cancel: answers waiting prompts. True if there were any. */
bool relay_order_cancel(struct relay *relay, const struct call *call);

void relay_order_finish(struct relay *relay); // frees all

#endif
