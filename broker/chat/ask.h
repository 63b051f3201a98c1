/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHAT_ASK_H
#define BROKER_CHAT_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include "acp/message.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "broker/chat/show.h"

/*
 * A question (session/request_permission) and the keys that answer it. The user sees who asks: the
 * agent, or the broker. The broker's tool calls have ids that no agent can use
 * (broker/session/tool_call_id.h).
 */
enum { ASK_OPTIONS_MAX = 9 };

struct ask_option {
	char *id;   // owned; JSON
	char *name; // owned; may be NULL
	char key;   // the letter of its kind; 0: only its number answers
	bool is_refusal;
};

struct ask {
	char *request; // owned; the request's id as JSON; NULL: no question is open
	struct ask_option options[ASK_OPTIONS_MAX];
	size_t count;
};

/*
 * Opens the question and prints it. `agent` is the agent's name for itself. False: the question
 * cannot be shown or has no options; then no question is open, and the caller refuses it.
 */
bool ask_open(struct ask *ask, const struct message *message, const char *agent, struct show *show,
	struct buf *out) ATTR_NODISCARD;

/* The option that the key chooses; -1: none. */
int ask_find(const struct ask *ask, char key);

/* The first option that refuses; -1: there is none. */
int ask_find_refusal(const struct ask *ask);

/* Appends the result that answers the request; option -1 answers "cancelled". */
void ask_write(const struct ask *ask, int option, struct buf *out);

void ask_close(struct ask *ask); // idempotent

#endif
