/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_TOOL_CALL_ID_H
#define BROKER_SESSION_TOOL_CALL_ID_H

#include <stdbool.h>

#include "acp/message.h"

/*
 * The ids of the broker's own tool calls: its questions and notices. They all begin with the same
 * prefix, which no agent may use. No agent can guess one. Otherwise an agent could update such a
 * tool call, and replace what the user is asked.
 */
enum { TOOL_CALL_ID_MAX = 64 }; // bytes, with the NUL

/* Creates a new id that nobody can guess. */
void tool_call_id_create(char out_id[TOOL_CALL_ID_MAX]);

/* The same for notices: creates the common prefix for all notices of one broker. */
void tool_call_id_create_notice(char out_prefix[TOOL_CALL_ID_MAX]);

/* Whether a message names a tool call by an id that has the broker's prefix. */
bool tool_call_id_is_named(const struct message *message);

/* Whether it names this tool call. */
bool tool_call_id_names(const struct message *message, const char *id);

#endif
