/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_NOTICE_H
#define BROKER_SESSION_NOTICE_H

#include <stdbool.h>

struct relay;
struct session;

/*
 * Tells the user something that ACP has no place for: a finished tool call of
 * the broker's own in the session, so that every editor shows it, and a line in
 * the log. The editor must know the session.
 */
void notice_send(
	struct relay *relay, const struct session *session, const char *text, bool is_failure);

enum notice_status { NOTICE_RUNNING, NOTICE_COMPLETED, NOTICE_FAILED };

/*
 * The same without the log, of something that takes a while: number 0 begins a tool call,
 * whose number is returned; with that one it is told how far it has come. Who
 * begins one ends it: with NOTICE_COMPLETED or NOTICE_FAILED.
 */
unsigned notice_show(struct relay *relay, const struct session *session, unsigned number,
	const char *title, enum notice_status status);

#endif
