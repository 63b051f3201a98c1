/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ONCE_H
#define BROKER_GATE_GRANT_ONCE_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/*
 * What a yes to a session/request_permission allows once more: the writes and the command that it
 * shows. NULL-terminated; NULL: nothing, or it is not known what.
 */
struct subject **grant_once_read(
	const struct message *message, const struct subject *tool, const struct session *session);
void grant_once_free(struct subject **list); // NULL is fine

/* The yes has come; takes what the subjects hold. */
void grant_once_add(struct session *session, struct subject *const *list);

extern const char grant_once_rule[]; // what stands for the rule then

/*
 * Where the mode would ask about what was just allowed so, it is allowed; this uses it up. Where
 * the diff has shown what the file holds, it stays to be asked about, unless the file does hold
 * that (grant_ask): the old text is the caller's then, NULL else.
 */
void grant_once_decide(struct session *session, const struct message *message,
	const struct subject *subject, struct grant_decision *decision, char **out_old_text);

#endif
