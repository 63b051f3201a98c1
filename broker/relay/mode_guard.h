/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_MODE_GUARD_H
#define BROKER_RELAY_MODE_GUARD_H

#include "base/json_doc.h"
#include "broker/session/choices.h"
#include "broker/session/hop.h"

/*
 * Policy's consent to the modes in which an agent asks nobody (broker/policy/modes.h,
 * policy_decide_agent_modes). An agent that starts in one or changes to one is set back, and
 * prompts wait until that was answered. Where that cannot be done the session takes no prompt.
 * Nothing of this happens where policy consents. What the editor chooses is up to choice_gate.h.
 */
struct mode_guard; // what is known of one session; session.guard

void mode_guard_destroy(struct mode_guard *guard); // NULL is fine

/*
 * A session was opened: reads what it is in, by the answer, or where that does not say it by what
 * the agent has told before it; then, once the editor knows it, sets it back.
 */
void mode_guard_read(struct relay *relay, struct session *session, struct request *request,
	const struct call *call);
void mode_guard_opened(struct relay *relay, struct request *request);

/* A session/update was passed to the editor; cheap where it is about no mode. */
void mode_guard_on_update(struct peer *peer, const struct call *call);

/* True where a prompt was set aside until the agent was set back. */
bool mode_guard_holds(struct relay *relay, const struct call *call);
bool mode_guard_has_prompt(const struct relay *relay, const struct session *session); // set aside
bool mode_guard_is_busy(const struct session *session); // the agent is being set back

/* The session is not being opened any more: a prompt that was set aside goes on where it may. */
void mode_guard_release(struct relay *relay, struct session *session);

/* session/prompt: false where the session takes none. */
bool mode_guard_admits(const struct session *session, struct error *err) ATTR_NODISCARD;

/* session/cancel, or the session's end: a prompt that was set aside is answered. */
void mode_guard_cancel(struct relay *relay, const struct session *session);

/* ---- for choice_gate.c ---- */

enum { MODE_TEXT_MAX = 640 }; // bytes of a setting, for people

/* The line of the policy that refuses; NULL where it consents. */
const char *mode_guard_rule(const struct relay *relay);

/* "mode "yolo"" or "allow_all = "on"", for people. */
void mode_guard_describe(char text[MODE_TEXT_MAX], const char *config_id, const char *value);

/* One line in the audit log: refused. */
void mode_guard_audit(struct relay *relay, const struct session *session, const char *what);

/* The name of the session's agent; of a session that is not known, of the one that runs. */
const char *mode_guard_agent(struct relay *relay, const struct session *session);

/* The configOptions that the agent has told; the caller destroys them. NULL: none are known. */
struct json_doc *mode_guard_options(const struct session *session);

/* The agent has acknowledged what the editor has just chosen. */
void mode_guard_note_choice(struct relay *relay, struct session *session,
	const struct choice *choice, const struct call *answer);

/*
 * Asks the agent for a change, within start-timeout; the answer's taker begins with
 * mode_guard_take_answer. NULL: it cannot be asked.
 */
typedef void mode_guard_answered(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure);
struct request *mode_guard_ask(struct relay *relay, struct session *session,
	const struct choice *choice, mode_guard_answered *on_answer, struct error *err);

/*
 * The session that was asked for; NULL: the answer is stale, or the agent has ended, and a prompt
 * that waited was told so.
 */
struct session *mode_guard_take_answer(
	struct relay *relay, struct request *request, const struct error *failure);

/* The agent has acknowledged it: what it was to be set back from does not count any more. */
void mode_guard_was_set(
	struct session *session, const struct choice *choice, const struct call *answer);

/*
 * Tells the agent what it does not know of the editor's choices, sets back what is to be set back,
 * one after the other, and then what was told meanwhile; then a prompt that waited goes on.
 */
void mode_guard_set_back(struct relay *relay, struct session *session);

#endif
