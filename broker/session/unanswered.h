/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_UNANSWERED_H
#define BROKER_SESSION_UNANSWERED_H

#include "broker/session/hop.h"

/* How long the broker waits for an answer, and what becomes of a request that gets none. */

/* Takes a question back from the editor, under the id it knows. */
void relay_withdraw_question(struct relay *relay, const struct request *request);

/* A question went to the user: permission-timeout counts. */
void relay_watch_question(struct request *request);

/* The editor has cancelled the session's turn: cancel-timeout counts for its questions. */
void relay_watch_cancelled(struct relay *relay, const struct session *session);

/*
 * A request of the broker's own went to its agent: where no answer comes in time, on_answer hears
 * of that (TIMEOUT_EXCEEDED, with the static text `why`), and the request is freed.
 */
void relay_watch_own(struct request *request, int timeout_ms, const char *why);

#endif
