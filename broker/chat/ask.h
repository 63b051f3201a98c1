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
 * A question of session/request_permission and the keys that answer it. The user sees who asks:
 * the broker, whose tool calls have ids that no agent can use (broker/session/tool_call_id.h), or
 * the agent.
 */
enum { ASK_OPTIONS_MAX = 9 };

struct ask_option {
	char *id;   // owned; JSON
	char *name; // owned; may be NULL
	char key;   // a letter by its kind; 0: its number alone
	bool is_refusal;
};

struct ask {
	char *request; // owned; the id of the request, raw; NULL: nothing is asked
	struct ask_option options[ASK_OPTIONS_MAX];
	size_t count;
};

/*
 * Opens it and prints it. `agent` is the agent's name for itself. False: the question cannot
 * be shown or has no options; nothing is open then, and the caller refuses it.
 */
bool ask_open(struct ask *ask, const struct message *message, const char *agent, struct show *show,
	struct buf *out) ATTR_NODISCARD;

/* Which option a key is; -1: none. */
int ask_find(const struct ask *ask, char key);

/* The first that says no; -1: there is none. */
int ask_find_refusal(const struct ask *ask);

/* The result to answer with; option -1: cancelled. Appended. */
void ask_write(const struct ask *ask, int option, struct buf *out);

void ask_close(struct ask *ask); // idempotent

#endif
