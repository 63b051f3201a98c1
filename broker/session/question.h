/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_QUESTION_H
#define BROKER_SESSION_QUESTION_H

#include "base/json_writer.h"
#include "broker/session/hop.h"

/*
 * The common part of the broker's own questions to the user (ACP, session/request_permission):
 * about a call of the agent (grant_question.c), and about deletions (grant_deletions.c).
 */

/* A part of the question's request. */
struct question {
	struct subject *subject; // owned; what the question is about
	const char *options;     // the options that it offers, JSON; static
	char *tool_call_id;      // owned; of the tool call that shows it; NULL: not written yet
	char *title;             // owned; of that tool call
	bool is_hidden;          // the editor does not show it yet
};

struct question *question_of(struct request *request);         // creates it if missing
struct question *question_find(const struct request *request); // NULL: no question

/*
 * Begins a question in relay->scratch and leaves the writer inside its params. The request has an
 * id.
 */
void question_begin(struct request *request, struct json_writer *writer);

/* The line of the policy that makes the broker ask. */
struct question_reason {
	const char *rule;   // borrowed: "ask = write **", "mode = ask-all"
	bool is_users_rule; // a rule of the user's, not the mode
};

/*
 * Writes the first members of the question's tool call: an id that nobody can guess; a title, which
 * begins with the one who asks and the rule; and the status "pending". `what` is Markdown
 * (markdown.h), like the title.
 */
void question_write_head(struct json_writer *writer, struct request *request,
	const struct question_reason *reason, const char *kind, struct span what);

/* Writes a text as an item of a tool call's content. */
void question_write_text(struct json_writer *writer, struct span text);

/* Writes a tool call's content that consists of one text; of nothing, if the text is empty. */
void question_write_content(struct json_writer *writer, struct span text);

/* Ends the question with the options of the request. ERROR_LIMIT. */
bool question_end(const struct request *request, struct json_writer *writer,
	struct error *err) ATTR_NODISCARD;

/*
 * Ends the question's tool call in the editor, as completed or failed, under its original title,
 * even if the agent has changed that.
 */
void question_close(struct relay *relay, const struct request *request, bool allowed);

#endif
