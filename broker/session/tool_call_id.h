/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_TOOL_CALL_ID_H
#define BROKER_SESSION_TOOL_CALL_ID_H

#include <stdbool.h>

#include "acp/message.h"

/*
 * The ids of tool calls that are the broker's own: its questions and notices. They all begin with
 * the same letters, so that an agent can have none of them, and no agent can know one: what it
 * says of a tool call would stand in the place of what the user is asked.
 */
enum { TOOL_CALL_ID_MAX = 64 }; // bytes, with the NUL

/* A new one that nobody can guess. */
void tool_call_id_create(char out_id[TOOL_CALL_ID_MAX]);

/* The same for notices: the beginning of them all, of one broker. */
void tool_call_id_create_notice(char out_prefix[TOOL_CALL_ID_MAX]);

/* Whether a message names a tool call by an id that begins as the broker's own do. */
bool tool_call_id_is_named(const struct message *message);

/* Whether it names this one. */
bool tool_call_id_names(const struct message *message, const char *id);

#endif
