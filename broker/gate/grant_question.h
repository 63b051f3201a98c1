/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_QUESTION_H
#define BROKER_GATE_GRANT_QUESTION_H

#include "broker/gate/grant_answer.h"
#include "broker/gate/old_text.h"
#include "broker/session/question.h"

/* Of a question about a call of the agent's: a part of its request. */
struct asking {
	struct waiting waiting;    // the call
	struct request *request;   // whose part this is
	struct old_text *old_text; // owned; the question is hidden until this is known; or NULL
	size_t diff_at;            // where its diff begins; 0: it has none
	char *shown_text;          // owned; what the agent has shown as the old text; or NULL
};

struct asking *asking_of(struct request *request); // made where there is none

/* What a question offers, JSON: with "always" where that can be remembered. */
extern const char grant_options_once[];
extern const char grant_options_always[];

/* Why a decision asks; borrows from it. */
struct question_reason grant_question_reason(const struct grant_decision *decision);

/* A command as a user is shown it: words as a shell would have to be told them. Owned. */
char *grant_command_shown(const struct subject *subject);

/* Writes the question into relay->scratch; its request has an id and a subject. */
bool grant_question_write(struct request *request, const struct call *call,
	const struct question_reason *reason, struct error *err) ATTR_NODISCARD;

/* The question kept in request->message, with what the file holds; appended. */
bool grant_question_complete(struct buf *out, struct request *request,
	const struct old_text_answer *answer) ATTR_NODISCARD;

#endif
