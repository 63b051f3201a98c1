/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_TURN_H
#define BROKER_RELAY_RELAY_TURN_H

#include "broker/relay/sync_show.h"
#include "broker/session/hop.h"

/*
 * Messages that wait for a sync: a prompt for the sync before it, its answer for the sync after it.
 * If nothing is synced at turns, nothing waits.
 */

/* True if the prompt was set aside; it goes on once the workspaces are synced. */
bool relay_turn_holds_prompt(struct peer *peer, const struct call *call);

/* The same for the answer to a prompt; takes the request then. */
bool relay_turn_holds_answer(struct request *request, const struct call *call);

/*
 * The same for a request or notification that the agent sends after such an answer of the same
 * session, and for a $/cancel_request for such a request. So all messages of a session arrive in
 * order.
 */
bool relay_turn_holds_message(struct peer *peer, const struct call *call);

/*
 * True if more than max-queue bytes from the agent wait: the broker does not read from it until
 * link_resume.
 */
bool relay_turn_is_full(const struct peer *peer);

/* Whether a prompt of the session waits. */
bool relay_turn_has_prompt(const struct peer *peer, const struct session *session);

/* Whether a turn of the session is open: from its prompt until its answer has left. */
bool relay_turn_is_open(const struct peer *peer, const struct session *session);

/*
 * session/cancel: answers the waiting prompts of the session (NULL: all) with "cancelled"; their
 * agent never receives them. False if none waits.
 */
bool relay_turn_cancel(struct peer *peer, const struct session *session);

/* Callbacks of STAGE_SYNC and STAGE_ANSWER. */
void relay_turn_on_left(struct waiting *waiting, const struct error *failure);
void relay_turn_on_gone(struct waiting *waiting);

/* Callbacks of STAGE_BEHIND. */
void relay_turn_on_follower_left(struct waiting *waiting, const struct error *failure);
void relay_turn_on_follower_gone(struct waiting *waiting);

/*
 * Another agent takes the place of this one: drops the earlier agent's waiting requests and
 * cancellations.
 */
void relay_turn_forget_requests(struct peer *peer);

/*
 * The display of the turn's sync that was requested with this data; NULL if it is not a turn's
 * sync.
 */
struct sync_show *relay_turn_show(struct peer *peer, const void *asker);

/* Answers waiting messages with a failure; the keeper calls nothing more. */
void relay_turn_finish_all(struct peer *peer, const struct error *failure);

#endif
