/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_NOTICE_H
#define BROKER_SESSION_NOTICE_H

#include <stdbool.h>

struct relay;
struct session;

/*
 * Tells the user something for which ACP has no message. It becomes a finished tool call of the
 * broker's own in the session, which every editor shows, and a line in the log. The editor must
 * know the session.
 */
void notice_send(
	struct relay *relay, const struct session *session, const char *text, bool is_failure);

enum notice_status { NOTICE_RUNNING, NOTICE_COMPLETED, NOTICE_FAILED };

/*
 * Shows the progress of work that takes long; writes no log line. Number 0 begins a tool call and
 * returns its number; later calls with that number update it. The caller must end it with
 * NOTICE_COMPLETED or NOTICE_FAILED.
 */
unsigned notice_show(struct relay *relay, const struct session *session, unsigned number,
	const char *title, enum notice_status status);

#endif
