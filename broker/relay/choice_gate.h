/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_CHOICE_GATE_H
#define BROKER_RELAY_CHOICE_GATE_H

#include "broker/session/choices.h"
#include "broker/session/hop.h"

/*
 * What the editor chooses in a session: a mode, a model, an option. One that policy does not
 * consent to is refused. The others are remembered (broker/session/choices.h), also in the record,
 * and told to an agent that was started anew, before the next prompt. Who waits meanwhile, and who
 * is asked when, is up to the mode guard (broker/relay/mode_guard.h).
 */

/* session/set_mode and the like: false refuses what the editor chooses; it was acknowledged. */
bool choice_gate_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool choice_gate_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);

/* The agent tells of its mode, or of its options: what is remembered follows. */
void choice_gate_follow(
	struct relay *relay, struct session *session, bool is_mode, const struct call *call);

/* Tells the agent the next one that it does not know: true where its answer is waited for. */
bool choice_gate_send(struct relay *relay, struct session *session);

/* The editor shows what is so now: an agent need not tell of a change it was asked for. */
void choice_gate_show(struct relay *relay, const struct session *session,
	const struct choice *choice, const struct call *answer);

/* A prompt: true where the agent has refused one, so that the prompt was answered with that. */
bool choice_gate_fails(struct relay *relay, struct session *session, const struct call *call);

#endif
