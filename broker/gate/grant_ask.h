/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ASK_H
#define BROKER_GATE_GRANT_ASK_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/*
 * Asks the user about a file or a command with the broker's own session/request_permission. The
 * call is set aside until the answer. A yes sends it on; anything else refuses it. `old_text` is
 * the old text that the agent's own question showed, if the user has allowed the write there;
 * otherwise it is NULL. If the file holds exactly that text, the user is not asked again.
 */
void grant_ask(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct grant_decision *decision, const char *old_text);

/*
 * The session is cancelled or ends: refuses the calls that the broker asks about in it, and
 * withdraws the questions.
 */
void grant_cancel_session(struct relay *relay, const char *session_id);

/*
 * For a request that the broker makes in the agent's place: withdraws the question about it, and
 * refuses it. False if nobody is being asked.
 */
bool grant_take_back(struct peer *peer, struct span id);

/* One of the broker's own questions gets no answer: shows its tool call as failed. */
void grant_close_question(struct relay *relay, const struct request *request);

/*
 * For STAGE_USER: the agent cancels its call. True if the editor does not have the question yet;
 * then it never gets it. False if the editor has the question; then the editor is told.
 */
bool grant_ask_takes_cancel(struct waiting *waiting);

/*
 * Fails a waiting request of an agent; an agent that has ended is told nothing. If the request is
 * the agent's own question, and nobody is asked any more (PERMISSION_DENIED), the answer is
 * `cancelled`.
 */
void grant_fail(const struct asker *asker, const struct error *failure);

extern const struct error grant_taken_back; // the agent has sent $/cancel_request

#endif
