/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_ANSWER_H
#define BROKER_SESSION_ANSWER_H

#include "broker/session/hop.h"

/* Answers that the broker gives itself, to the editor or to an agent. */

extern const struct error relay_is_ending, relay_has_ended; // SHUTTING_DOWN
extern const struct error relay_editor_has_left;            // EDITOR_GONE

/* Answers a request of the editor or of an agent with an error. */
void relay_fail(struct relay *relay, struct span id, const struct error *failure);
void peer_fail(struct peer *peer, struct span id, const struct error *failure);

/* The same for an agent's request, which may be one of the broker's own (method.h, on_failure). */
void peer_fail_method(struct peer *peer, const struct method *method, struct span id,
	const struct error *failure);

/* Messages of the editor that wait for the same thing. */
struct backlog {
	int count;
	size_t bytes;
	const char *stage;
	const char *what; // "prompts", "requests"
	const char *that; // what they wait for; follows "wait for" in the error's text
};

/*
 * Whether one more may wait (max-requests, max-queue). If not, a request is answered with an error.
 */
bool relay_admits(struct relay *relay, const struct call *call, const struct backlog *backlog);

/*
 * For the editor's messages: whether one more may wait. Limits: max-requests messages (requests and
 * notifications) and max-queue bytes plus one message. If not, a request is answered with an error.
 * Three stages have other limits and do not call this: STAGE_READY (these bytes for each agent),
 * STAGE_LIST (its own limit) and STAGE_MODE (one prompt per session).
 */
bool relay_admits_at(struct relay *relay, const struct call *call, struct desk_pick pick);

/* Answers a request of the editor or of an agent with a result (JSON). */
void relay_answer(struct relay *relay, struct span id, struct span result);
void relay_answer_cancelled(struct relay *relay, struct span id);
void peer_answer(struct peer *peer, struct span id, struct span result);

/* The same, but takes over the memory of the result, which becomes the message. */
void peer_answer_taken(struct peer *peer, struct span id, struct buf *result);

/* Answers a request of the editor with an error and frees the request. */
void relay_fail_request(struct relay *relay, struct request *request, const struct error *failure);

/* Answers an agent's request for an editor that has gone. */
void peer_answer_when_gone(struct peer *peer, struct span id, const struct method *method);

/* Tells the session's agent to stop its prompt. */
void relay_cancel_prompt(struct relay *relay, const struct session *session);

#endif
