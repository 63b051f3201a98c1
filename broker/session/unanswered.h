/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_UNANSWERED_H
#define BROKER_SESSION_UNANSWERED_H

#include "broker/session/hop.h"

/* How long the broker waits for an answer, and what happens to a request without one. */

/* Takes a question back from the editor, under the id that the editor knows. */
void relay_withdraw_question(struct relay *relay, const struct request *request);

/* A question was sent to the user: starts permission-timeout. */
void relay_watch_question(struct request *request);

/* The editor has cancelled the session's turn: starts cancel-timeout for its questions. */
void relay_watch_cancelled(struct relay *relay, const struct session *session);

/*
 * One of the broker's own requests was sent to its agent. If no answer arrives in time, on_answer
 * gets TIMEOUT_EXCEEDED with the static text `why`, and the request is freed.
 */
void relay_watch_own(struct request *request, int timeout_ms, const char *why);

#endif
