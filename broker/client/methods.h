/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLIENT_METHODS_H
#define BROKER_CLIENT_METHODS_H

#include "acp/message.h"
#include "base/json_writer.h"
#include "broker/client/client.h"

/*
 * A request: begins its params, an open object that `writer` writes to `out`; then ends the object,
 * sends the request and finishes the buffer.
 */
void client_params_begin(struct json_writer *writer, struct buf *out);
void client_params_send(
	struct client *client, long id, const char *method, struct json_writer *writer);

/*
 * Write the params of requests that this program's own clients make (ACP, protocolVersion 1), as
 * members of an open object. These clients offer neither files nor terminals, and bring no MCP
 * servers. With wants_states the broker sends _broker/session/state (docs/daemons.md).
 */
void client_write_initialize(
	struct json_writer *writer, const char *client_name, bool wants_states);
void client_write_new(struct json_writer *writer, const char *cwd);
/* `session_id` is raw JSON. */
void client_write_prompt(struct json_writer *writer, const char *session_id, struct span text);

/*
 * Returns the raw sessionId of an answer to session/new; the caller owns it. NULL with
 * ERROR_PROTOCOL if it has none.
 */
char *client_take_session_id(const struct message *message, struct error *err) ATTR_NODISCARD;

#endif
