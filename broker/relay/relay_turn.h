/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_TURN_H
#define BROKER_RELAY_RELAY_TURN_H

#include "broker/relay/sync_show.h"
#include "broker/session/hop.h"

/*
 * What waits for a sync: a prompt for the one before it, its answer for the one after it.
 * Where nothing is synced at the turns, nothing waits.
 */

/* True where the prompt was set aside: it goes on once the workspaces are synced. */
bool relay_turn_holds_prompt(struct peer *peer, const struct call *call);

/* The same of its answer; the request is taken then. */
bool relay_turn_holds_answer(struct request *request, const struct call *call);

/*
 * The same of a request or a notification of the agent's, behind an answer in its session, and
 * of $/cancel_request for such a request: so all that it says of a session comes in its order.
 */
bool relay_turn_holds_message(struct peer *peer, const struct call *call);

/* More than max-queue bytes of the agent's wait: it is not read. link_resume follows. */
bool relay_turn_is_full(const struct peer *peer);

/* Whether a prompt of the session waits. */
bool relay_turn_has_prompt(const struct peer *peer, const struct session *session);

/*
 * session/cancel: the session's prompts that wait (NULL: all) are answered with "cancelled",
 * and their agent never hears of them. False: none waits.
 */
bool relay_turn_cancel(struct peer *peer, const struct session *session);

/* Of STAGE_SYNC and STAGE_ANSWER. */
void relay_turn_on_left(struct waiting *waiting, const struct error *failure);
void relay_turn_on_gone(struct waiting *waiting);

/* Another agent is in its place: what the one before has asked, or taken back, is dropped. */
void relay_turn_forget_requests(struct peer *peer);

/* What is shown of the turn's sync that was asked for with this data; NULL: it is no turn's. */
struct sync_show *relay_turn_show(struct peer *peer, const void *asker);

/* Answers what waits with a failure; the keeper raises nothing more. */
void relay_turn_finish_all(struct peer *peer, const struct error *failure);

#endif
