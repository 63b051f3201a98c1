/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_AUDIT_H
#define BROKER_GATE_GRANT_AUDIT_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/* Writes one audit line, for a decision of policy or of a remembered answer. */
void grant_audit(struct relay *relay, const struct session *session, const struct subject *subject,
	const struct grant_decision *decision);

/* Call it before the broker asks its own question: notes what the audit line will need. */
void grant_note_asked(struct request *request, const struct subject *subject, const char *rule);

/* The user has said yes to the agent's own question, so nobody needs to be asked any more. */
void grant_note_allowed(struct relay *relay, struct request *request);

/*
 * Returns the meaning of the answer to such a question; a failure instead of an answer means no.
 * Writes one audit line.
 */
struct grant_answer grant_settle(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure);

/* Notes for the audit log that an agent's own question was forwarded, was answered, or failed. */
void grant_note_forwarded(struct request *request, const struct call *call);
void grant_note_answered(struct relay *relay, struct request *request, const struct call *call);
void grant_note_failed(struct relay *relay, struct request *request, const struct error *failure);

/*
 * The agent updates a tool call, and the editor shows the update in place of what it showed before.
 * If a question about that tool call is open, a yes answers only the question. It no longer counts
 * for the action itself (grant_once.h), because the user may have seen something else.
 */
void grant_note_shown(struct peer *peer, const struct call *call);

#endif
