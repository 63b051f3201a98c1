/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ORDER_H
#define BROKER_RELAY_ORDER_H

#include "broker/relay_internal.h"

/*
 * The editor may send a session/load or session/resume, and what it wants of that session right
 * behind it. All that names its session waits behind it, and goes on in its order once the request
 * was answered: it may be another agent's than it seemed to be - another broker's record may have
 * it, or its own agent has ended and is started for this -, and in a mode that is not known before.
 * Only session/cancel, and the editor's answers, go ahead. No more than max-requests of a session
 * wait, it among them, nor more than max-queue bytes and one message.
 */

/* A session/load or session/resume has come. Nothing where another request is meant. */
void relay_order_begin(struct relay *relay, const struct call *call);

/* A request of the editor's, or a notification: true where it waits, or was answered. */
bool relay_order_holds(struct relay *relay, const struct call *call);

/* A request of the editor's was answered: what waits goes on, soon. */
void relay_order_note(struct relay *relay, struct span id);

/* session/cancel: prompts that wait are answered. True where there were any. */
bool relay_order_cancel(struct relay *relay, const struct call *call);

/* $/cancel_request: true where the request waited, and was answered. */
bool relay_order_cancel_request(struct relay *relay, struct span id);

void relay_order_end(struct relay *relay);    // the broker ends: what waits is answered
void relay_order_finish(struct relay *relay); // frees all

#endif
