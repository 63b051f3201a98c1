/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_STAGES_H
#define BROKER_RELAY_RELAY_STAGES_H

#include "broker/session/hop.h"

/* The stages of the relay's desk (broker/desk/desk.h): what a message waits for. */

void relay_stages_init(struct relay *relay);

/*
 * Of the editor's: whether one more may wait: no more than max-requests of these, requests and
 * notifications, nor more than max-queue bytes and one message. Else a request is answered. Not
 * asked are STAGE_READY, which has no other bound than these bytes for each agent; STAGE_LIST,
 * which has its own; and STAGE_MODE, where one prompt of a session waits.
 */
bool relay_admits_at(struct relay *relay, const struct call *call, struct desk_pick pick);

#endif
