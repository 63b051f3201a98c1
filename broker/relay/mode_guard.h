/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_MODE_GUARD_H
#define BROKER_RELAY_MODE_GUARD_H

#include "broker/policy/modes.h"
#include "broker/relay/mode_gate.h"
#include "broker/session/choices.h"

/* What mode_gate.c and mode_guard.c share: the state of a session whose modes are gated. */

enum { MODE_TEXT_MAX = 640 }; // bytes of a setting, for people

/* What the agent has told that nobody has looked at yet: the last update of each kind. */
struct mode_news {
	char *mode;    // owned; params of current_mode_update, JSON; may be NULL
	char *options; // the same of config_option_update
};

struct mode_guard {
	struct modes_fix fixes[MODES_FIXES_MAX]; // to be set back, one after the other
	size_t fix_count;
	size_t fix_at;               // the one in flight
	char agent[64];              // its name, as peer.agent_name
	bool told_unknown;           // the person was told that nobody knows what its mode does
	bool is_modeless;            // it has told neither modes nor options
	bool is_busy;                // a set-back, or a choice of the editor's, is in flight
	const struct request *asked; // its request, only to be compared: others are stale; or NULL
	struct mode_news news;       // told while one is in flight
	bool barred_by_option;       // not by the mode
	char mode[MODES_NAME_MAX];   // the last one in which the agent asks; "": not known
	char *options;               // owned; the agent's configOptions, JSON; may be NULL
	char *barred;                // owned; why the session takes no prompt; NULL: it does
	int attempts;                // set-backs so far
};

/* The session's, made where there is none. */
struct mode_guard *mode_guard_of(struct session *session);

/* The line of the policy that refuses; NULL where it consents. */
const char *mode_guard_rule(const struct relay *relay);

/* "mode "yolo"" or "allow_all = "on"", for people. */
void mode_guard_describe(char text[MODE_TEXT_MAX], const char *config_id, const char *value);

/* The name of the session's agent; of a session that is not known, of the one that runs. */
const char *mode_guard_agent(struct relay *relay, const struct session *session);

/* Tells the person, once, where nobody knows what the agent does in its mode. */
void mode_guard_tell_unknown(struct relay *relay, struct session *session);

/* Whether the agent asks less in it, as far as the session's options are known. */
bool mode_guard_asks_less(
	struct relay *relay, const struct session *session, const struct choice *choice);

/* One line in the audit log: refused. */
void mode_guard_audit(struct relay *relay, const struct session *session, const char *what);

/* The mode, or an option, is one in which the agent asks again: prompts are taken. */
void mode_guard_unbar(struct mode_guard *guard, bool by_option);

/* The configOptions of an object, if it has them. */
void mode_guard_keep_options(struct mode_guard *guard, const struct json_doc *doc);

/* The answer to a change: what it says of the options, all of them, is how it is now. */
void mode_guard_read_result(struct mode_guard *guard, const struct call *call);

/* The editor's choice was acknowledged. */
void mode_gate_note_set(struct mode_guard *guard, const struct choice *choice);

void mode_news_clear(struct mode_news *news);

/* Reads what was told meanwhile; whether something of it is to be set back. */
bool mode_gate_take_news(struct mode_guard *guard);

/* Whether it says that the agent is in what it was just set back from. */
bool mode_gate_is_back_in(const struct mode_guard *guard, const struct modes_fix *fix);

/*
 * Asks the agent for a change, within start-timeout; the answer's taker begins with
 * mode_guard_take_answer. NULL: it cannot be asked.
 */
typedef void mode_guard_answered(struct relay *relay, struct request *request,
	const struct call *answer, const struct failure *failure);
struct request *mode_guard_ask(struct relay *relay, struct session *session,
	const struct choice *choice, mode_guard_answered *on_answer, struct error *err);

/*
 * The session that was asked for; NULL: the answer is stale, or the agent has ended, and a prompt
 * that waited was told so.
 */
struct session *mode_guard_take_answer(
	struct relay *relay, struct request *request, const struct failure *failure);

/* The agent has acknowledged it: what it was to be set back from does not count any more. */
void mode_guard_was_set(
	struct session *session, const struct choice *choice, const struct call *answer);

/* The editor shows what is so now: an agent need not tell of a change it was asked for. */
void mode_guard_show(struct relay *relay, const struct session *session,
	const struct choice *choice, const struct call *answer);

/*
 * Tells the agent what it does not know of the editor's choices, sets back what is in
 * guard->fixes, one after the other, and then what was told meanwhile; then a prompt that waited
 * goes on.
 */
void mode_guard_set_back(struct relay *relay, struct session *session);

#endif
