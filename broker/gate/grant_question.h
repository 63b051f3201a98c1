/* SPDX-License-Identifier: MIT */
#ifndef BROKER_GATE_GRANT_QUESTION_H
#define BROKER_GATE_GRANT_QUESTION_H

#include "broker/gate/grant_answer.h"
#include "broker/gate/old_text.h"
#include "broker/session/question.h"

/* A question about a call of the agent; a part of its request. */
struct asking {
	struct waiting waiting;    // the call
	struct request *request;   // the request that this is a part of
	struct old_text *old_text; // owned; reads the file before the user is asked; or NULL
	size_t diff_at;            // offset of its diff; 0: it has none
	char *shown_text;          // owned; the old text that the agent has shown; may be NULL
};

struct asking *asking_of(struct request *request); // creates it if missing

/* The options of a question, JSON; "always" is among them if the answer can be remembered. */
extern const char grant_options_once[];
extern const char grant_options_always[];

/* The reason why a decision asks the user; borrows from the decision. */
struct question_reason grant_question_reason(const struct grant_decision *decision);

/* The command as the user sees it, quoted as for a shell. The caller owns it. */
char *grant_command_shown(const struct subject *subject);

/* Writes the question into relay->scratch. The request has an id and a subject. */
bool grant_question_write(struct request *request, const struct call *call,
	const struct question_reason *reason, struct error *err) ATTR_NODISCARD;

/* Appends the question kept in request->message, completed with the file's content. */
bool grant_question_complete(struct buf *out, struct request *request,
	const struct old_text_answer *answer) ATTR_NODISCARD;

#endif
