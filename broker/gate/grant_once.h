/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_ONCE_H
#define BROKER_GATE_GRANT_ONCE_H

#include "broker/gate/grant_answer.h"
#include "broker/session/hop.h"

/*
 * Reads the writes and the command that a session/request_permission shows: a yes to it allows them
 * once more. NULL-terminated; NULL if there are none or they cannot be read.
 */
struct subject **grant_once_read(
	const struct message *message, const struct subject *tool, const struct session *session);
void grant_once_free(struct subject **list); // NULL is fine

/* The user has said yes; takes the content of the subjects. */
void grant_once_add(struct session *session, struct subject *const *list);

extern const char grant_once_rule[]; // shown in place of a rule

/*
 * Turns "the mode would ask" into "allowed" if a yes has just allowed this subject, and uses that
 * yes up. If the question showed a diff with an old text, the decision stays "ask" and
 * *out_old_text is that text, owned by the caller; grant_ask asks only if the file holds something
 * else. Otherwise *out_old_text is NULL.
 */
void grant_once_decide(struct session *session, const struct message *message,
	const struct subject *subject, struct grant_decision *decision, char **out_old_text);

#endif
