/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_ANSWER_H
#define BROKER_SESSION_ANSWER_H

#include "broker/session/hop.h"

/* What the broker answers itself, to either side. */

extern const struct error relay_is_ending, relay_has_ended; // SHUTTING_DOWN
extern const struct error relay_editor_has_left;            // EDITOR_GONE

/* Answers a request of the editor's, or of an agent's, with an error. */
void relay_fail(struct relay *relay, struct span id, const struct error *failure);
void peer_fail(struct peer *peer, struct span id, const struct error *failure);

/* What the editor wants, and waits for the same. */
struct backlog {
	int count;
	size_t bytes;
	const char *stage;
	const char *what; // "prompts", "requests"
	const char *that; // what for, after "wait for"
};

/* Whether one more may wait (max-requests, max-queue); else a request is answered. */
bool relay_admits(struct relay *relay, const struct call *call, const struct backlog *backlog);

/*
 * Of the editor's: whether one more may wait: no more than max-requests of these, requests and
 * notifications, nor more than max-queue bytes and one message. Else a request is answered. Not
 * asked are STAGE_READY, which has no other bound than these bytes for each agent; STAGE_LIST,
 * which has its own; and STAGE_MODE, where one prompt of a session waits.
 */
bool relay_admits_at(struct relay *relay, const struct call *call, struct desk_pick pick);

/* Answers a request of the editor's, or of an agent's, with a result (JSON). */
void relay_answer(struct relay *relay, struct span id, struct span result);
void relay_answer_cancelled(struct relay *relay, struct span id);
void peer_answer(struct peer *peer, struct span id, struct span result);

/* The answer to a request of the editor's is an error; the request is freed. */
void relay_fail_request(struct relay *relay, struct request *request, const struct error *failure);

/* Nobody is there to answer an agent's request: the broker does. */
void peer_answer_when_gone(struct peer *peer, struct span id, const struct method *method);

/* Tells the session's agent to stop its prompt. */
void relay_cancel_prompt(struct relay *relay, const struct session *session);

#endif
