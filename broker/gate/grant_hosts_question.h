/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_HOSTS_QUESTION_H
#define BROKER_GATE_GRANT_HOSTS_QUESTION_H

#include "broker/gate/grant_answer.h"
#include "broker/session/question.h"

/* The question about a connection (grant_hosts.h), and what its answers mean. */

/* How long an answer holds, and for what. */
enum grant_hosts_answer {
	GRANT_HOSTS_NO,          // for the host, until the next prompt
	GRANT_HOSTS_NO_SESSION,  // for the host, until the agent ends
	GRANT_HOSTS_NO_MORE,     // for every host, until the agent ends
	GRANT_HOSTS_YES,         // for the connections that wait now
	GRANT_HOSTS_YES_SESSION, // for the host and the port, until the agent ends
	GRANT_HOSTS_YES_ALWAYS,  // the same, for the profile
};

/* The options as JSON; the second list also has "always", for answers that can be kept. */
extern const char grant_hosts_options[];
extern const char grant_hosts_options_kept[];

enum grant_hosts_answer grant_hosts_answer_of(const struct grant_answer *answer);

/* The `rule` that the audit log gives for each answer. */
extern const char *const grant_hosts_rules[]; // by enum grant_hosts_answer

extern const char grant_hosts_rule[]; // why the broker asks

/*
 * Writes the question into relay->scratch. The request has an id and a session. All texts are
 * foreign; `program` may be "".
 */
bool grant_hosts_question_write(struct request *request, const char *host, uint16_t port,
	const char *program, struct error *err) ATTR_NODISCARD;

#endif
