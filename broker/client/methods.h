/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLIENT_METHODS_H
#define BROKER_CLIENT_METHODS_H

#include "acp/message.h"
#include "base/json_writer.h"

/*
 * The params of what this program's own clients ask (ACP, protocolVersion 1): each writes the
 * members of an open object. They offer neither files nor terminals, and bring no MCP servers.
 */
void client_write_initialize(struct json_writer *writer, const char *client_name);
void client_write_new(struct json_writer *writer, const char *cwd);
/* `session_id` is raw JSON. */
void client_write_prompt(struct json_writer *writer, const char *session_id, struct span text);

/*
 * The raw sessionId of an answer to session/new, owned by the caller; NULL, with ERROR_PROTOCOL,
 * where it has none.
 */
char *client_take_session_id(const struct message *message, struct error *err) ATTR_NODISCARD;

#endif
