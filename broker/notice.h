/* SPDX-License-Identifier: MIT */
#ifndef BROKER_NOTICE_H
#define BROKER_NOTICE_H

#include <stdbool.h>

struct relay;
struct session;

/*
 * Tells the person something that ACP has no place for: a finished tool call of
 * the broker's own in the session, so that every editor shows it, and a line in
 * the log. The editor must know the session.
 */
void notice_send(
	struct relay *relay, const struct session *session, const char *text, bool is_failure);

#endif
