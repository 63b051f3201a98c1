/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SESSION_UPDATE_H
#define BROKER_SESSION_SESSION_UPDATE_H

#include "base/json_writer.h"

struct relay;

/*
 * A session/update of the broker's own (ACP): begun in relay->scratch, with the kind as the
 * first member of its `update`, whose further members the caller writes; then sent
 * to the editor.
 */
void session_update_begin(
	struct relay *relay, struct json_writer *writer, const char *session_id, const char *kind);
void session_update_send(struct relay *relay, struct json_writer *writer);

#endif
