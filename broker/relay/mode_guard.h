/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_MODE_GUARD_H
#define BROKER_RELAY_MODE_GUARD_H

#include "base/json_doc.h"
#include "broker/session/choices.h"
#include "broker/session/hop.h"

/*
 * Guards the modes in which an agent asks nobody (broker/policy/modes.h,
 * policy_decide_agent_modes). If policy does not allow such a mode, an agent that starts in it or
 * changes to it is set back, and prompts wait until the agent has answered. If it cannot be set
 * back, the session takes no prompt. If policy allows the modes, none of this happens.
 * choice_gate.h handles the editor's choices.
 */
struct mode_guard; // the state of one session; session.guard

void mode_guard_destroy(struct mode_guard *guard); // NULL is fine

/*
 * A session was opened. mode_guard_read reads its mode from the answer. If the answer does not
 * contain the mode, it uses what the agent has reported before. Once the editor knows the session,
 * mode_guard_opened sets the agent back if necessary.
 */
void mode_guard_read(struct relay *relay, struct session *session, struct request *request,
	const struct call *call);
void mode_guard_opened(struct relay *relay, struct request *request);

/* A session/update was passed to the editor. Cheap if it does not concern a mode. */
void mode_guard_on_update(struct peer *peer, const struct call *call);

/* True if a prompt was set aside until the agent is set back. */
bool mode_guard_holds(struct relay *relay, const struct call *call);
bool mode_guard_has_prompt(
	const struct relay *relay, const struct session *session); // one was set aside
bool mode_guard_is_busy(const struct session *session);            // the agent is being set back

/* The session is no longer being opened: a prompt that was set aside goes on if it may. */
void mode_guard_release(struct relay *relay, struct session *session);

/* session/prompt: false if the session takes no prompt. */
bool mode_guard_admits(const struct session *session, struct error *err) ATTR_NODISCARD;

/* session/cancel, or the session's end: answers a prompt that was set aside. */
void mode_guard_cancel(struct relay *relay, const struct session *session);

/* ---- for choice_gate.c ---- */

enum { MODE_TEXT_MAX = 640 }; // bytes of a setting as text

/* The policy's line that forbids the mode; NULL if policy allows it. */
const char *mode_guard_rule(const struct relay *relay);

/* Writes a setting for people: "mode "yolo"" or "allow_all = "on"". */
void mode_guard_describe(char text[MODE_TEXT_MAX], const char *config_id, const char *value);

/* Writes one line to the audit log: refused. */
void mode_guard_audit(struct relay *relay, const struct session *session, const char *what);

/* The name of the session's agent. For an unknown session, the name of the running agent. */
const char *mode_guard_agent(struct relay *relay, const struct session *session);

/*
 * The configOptions that the agent has reported; the caller destroys them. NULL if none are known.
 */
struct json_doc *mode_guard_options(const struct session *session);

/* The agent has acknowledged the editor's latest choice. */
void mode_guard_note_choice(struct relay *relay, struct session *session,
	const struct choice *choice, const struct call *answer);

/*
 * Asks the agent for a change, with start-timeout as the deadline. on_answer must begin with
 * mode_guard_take_answer. NULL if the agent cannot be asked.
 */
typedef void mode_guard_answered(struct relay *relay, struct request *request,
	const struct call *answer, const struct error *failure);
struct request *mode_guard_ask(struct relay *relay, struct session *session,
	const struct choice *choice, mode_guard_answered *on_answer, struct error *err);

/*
 * Returns the session that the request was for. NULL if the answer is stale, or if the agent has
 * ended. If it has ended, a waiting prompt was answered with `failure`.
 */
struct session *mode_guard_take_answer(
	struct relay *relay, struct request *request, const struct error *failure);

/*
 * The agent has acknowledged this change. Drops the waiting set-backs of the same setting, because
 * the setting no longer has the value that they would change. A change of the model drops none.
 */
void mode_guard_was_set(
	struct session *session, const struct choice *choice, const struct call *answer);

/*
 * Works through, one by one, the editor's choices that the agent does not know, the settings to set
 * back, and the changes that the agent reports meanwhile. Then a waiting prompt goes on.
 */
void mode_guard_set_back(struct relay *relay, struct session *session);

#endif
