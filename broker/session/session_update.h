/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SESSION_UPDATE_H
#define BROKER_SESSION_SESSION_UPDATE_H

#include "base/json_writer.h"

struct relay;

/*
 * Sends a session/update of the broker's own (ACP). session_update_begin starts it in
 * relay->scratch, with the kind as the first member of `update`. The caller writes the other
 * members, then calls session_update_send.
 */
void session_update_begin(
	struct relay *relay, struct json_writer *writer, const char *session_id, const char *kind);
void session_update_send(struct relay *relay, struct json_writer *writer);

#endif
