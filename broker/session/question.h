/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_QUESTION_H
#define BROKER_SESSION_QUESTION_H

#include "base/json_writer.h"
#include "broker/session/hop.h"

/*
 * What the broker's own questions to the user have in common (ACP,
 * session/request_permission): about a call of the agent's (grant_question.c), about
 * deletions (grant_deletions.c).
 */

/* A part of its request. */
struct question {
	struct subject *subject; // owned; what it is about
	const char *options;     // those it offers, JSON; static
	char *tool_call_id;      // owned; of the tool call that shows it; NULL: not written yet
	char *title;             // owned; of that
	bool is_hidden;          // the editor does not show it yet
};

struct question *question_of(struct request *request);         // made where there is none
struct question *question_find(const struct request *request); // NULL: it is none

/* Begins one in relay->scratch, inside its params; the request has an id. */
void question_begin(struct request *request, struct json_writer *writer);

/* What a question is asked by: a line of the policy. */
struct question_reason {
	const char *rule;   // borrowed: "ask = write **", "mode = ask-all"
	bool is_users_rule; // and not the mode
};

/*
 * The first members of its tool call: an id that nobody can guess, a title that begins with who
 * asks and by which rule, and that it waits. `what` is Markdown (markdown.h), like the title.
 */
void question_write_head(struct json_writer *writer, struct request *request,
	const struct question_reason *reason, const char *kind, struct span what);

/* A text, as an item of a tool call's content. */
void question_write_text(struct json_writer *writer, struct span text);

/* Ends it with the options of the request. ERROR_LIMIT. */
bool question_end(const struct request *request, struct json_writer *writer,
	struct error *err) ATTR_NODISCARD;

/*
 * The editor shows the question's tool call as done, or as failed, and no longer as waiting; under
 * the same title, whatever was said of it meanwhile.
 */
void question_close(struct relay *relay, const struct request *request, bool allowed);

#endif
