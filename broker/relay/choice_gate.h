/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_CHOICE_GATE_H
#define BROKER_RELAY_CHOICE_GATE_H

#include "broker/session/choices.h"
#include "broker/session/hop.h"

/*
 * The editor's choices in a session: a mode, a model, an option. A choice that policy does not
 * allow is refused. The broker remembers the others (broker/session/choices.h), also in the record,
 * and sends them to a restarted agent before the next prompt. The mode guard
 * (broker/relay/mode_guard.h) decides which prompts wait meanwhile and which question is asked
 * next.
 */

/*
 * session/set_mode and the other requests that make a choice. on_send returns false to refuse the
 * choice; on_result: the agent has acknowledged it.
 */
bool choice_gate_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool choice_gate_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);

/* The agent has reported its mode or its options: updates the remembered choices. */
void choice_gate_follow(
	struct relay *relay, struct session *session, bool is_mode, const struct call *call);

/* Sends the agent the next choice that it does not know. True if we wait for an answer. */
bool choice_gate_send(struct relay *relay, struct session *session);

/*
 * Shows the editor the present value, because an agent need not report a change that somebody
 * requested.
 */
void choice_gate_show(struct relay *relay, const struct session *session,
	const struct choice *choice, const struct call *answer);

/*
 * Takes a prompt. True if the agent has refused a choice, so that the prompt was answered with that
 * error.
 */
bool choice_gate_fails(struct relay *relay, struct session *session, const struct call *call);

#endif
