/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ASK_H
#define BROKER_GATE_GRANT_ASK_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/*
 * Asks the user about a file or a command by a
 * session/request_permission of the broker's own. The call is set aside until
 * the answer; a yes sends it on its way, anything else refuses it. Nobody is asked about a write
 * that was allowed in the agent's own question, if the file holds the old text that it showed;
 * NULL: it was not, or it showed none.
 */
void grant_ask(struct peer *peer, const struct call *call, const struct subject *subject,
	const struct grant_decision *decision, const char *old_text);

/* The session is cancelled or ends: what the broker asks in its name is refused, and withdrawn. */
void grant_cancel_session(struct relay *relay, const char *session_id);

/* A question of the broker's own will not be answered: its tool call is shown as failed. */
void grant_close_question(struct relay *relay, const struct request *request);

/*
 * Of STAGE_USER: the agent takes its call back. True where the question is not shown yet, and
 * never is; false: the editor has it, and is told.
 */
bool grant_ask_takes_cancel(struct waiting *waiting);

/*
 * A request of an agent's that waited fails; an agent that is gone is told nothing. A question of
 * its own that nobody is to be asked any more (PERMISSION_DENIED) is answered with `cancelled`.
 */
void grant_fail(const struct asker *asker, const struct error *failure);

extern const struct error grant_taken_back; // by its $/cancel_request

#endif
