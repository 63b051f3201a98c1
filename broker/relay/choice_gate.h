/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_CHOICE_GATE_H
#define BROKER_RELAY_CHOICE_GATE_H

#include "broker/session/choices.h"
#include "broker/session/hop.h"

/*
 * Remembers what the editor has chosen in a session (broker/session/choices.h), also in the record,
 * and tells it to an agent that was started anew, before the next prompt. Who waits meanwhile, and
 * who is asked when, is up to the mode guard (broker/relay/mode_guard.h), whose files use this.
 */

/* session/set_mode and the like goes to the agent: keeps its params; it was acknowledged. */
void choice_gate_keep(
	struct request *request, const struct session *session, const struct call *call);
void choice_gate_remember(struct relay *relay, struct session *session,
	const struct request *request, const struct call *answer);

/* The agent tells of its mode, or of its options: what is remembered follows. */
void choice_gate_follow(
	struct relay *relay, struct session *session, bool is_mode, const struct call *call);

/* Tells the agent the next one that it does not know: true where its answer is waited for. */
bool choice_gate_send(struct relay *relay, struct session *session);

/* A prompt: true where the agent has refused one, so that the prompt was answered with that. */
bool choice_gate_fails(struct relay *relay, struct session *session, const struct call *call);

#endif
