/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_MODE_GATE_H
#define BROKER_RELAY_MODE_GATE_H

#include "broker/session/hop.h"

/*
 * Policy's consent to the modes in which an agent asks nobody (broker/policy/modes.h,
 * policy_decide_agent_modes). The editor's wish for one is refused; an agent
 * that starts in one or changes to one is set back, and prompts wait until that
 * was answered. Where that cannot be done the session takes no prompt. Nothing
 * of this happens where policy consents.
 */
struct mode_guard;

void mode_guard_destroy(struct mode_guard *guard); // NULL is fine

/* session/set_mode and session/set_config_option: false refuses the editor's wish. */
bool mode_gate_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool mode_gate_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);

/*
 * A session was opened: reads what it is in, by the answer, or where that does not say it by what
 * the agent has told before it; then, once the editor knows it, sets it back.
 */
void mode_gate_read(struct relay *relay, struct session *session, struct request *request,
	const struct call *call);
void mode_gate_opened(struct relay *relay, struct request *request);

/* A session/update was passed to the editor; cheap where it is about no mode. */
void mode_gate_on_update(struct peer *peer, const struct call *call);

/* True where a prompt was set aside until the agent was set back. */
bool mode_gate_holds(struct relay *relay, const struct call *call);
bool mode_gate_has_prompt(const struct relay *relay, const struct session *session); // set aside
bool mode_gate_is_busy(const struct session *session); // the agent is being set back

/* The session is not being opened any more: a prompt that was set aside goes on where it may. */
void mode_gate_release(struct relay *relay, struct session *session);

/* session/prompt: false where the session takes none. */
bool mode_gate_admits(const struct session *session, struct error *err) ATTR_NODISCARD;

/* session/cancel, or the session's end: a prompt that was set aside is answered. */
void mode_gate_cancel(struct relay *relay, const struct session *session);

#endif
