/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_STAGES_H
#define BROKER_RELAY_RELAY_STAGES_H

#include "broker/session/hop.h"

/* The stages of the relay's desk (broker/desk/desk.h): what a message of the editor's waits for. */

void relay_stages_init(struct relay *relay);

/*
 * Whether one more may wait there: no more than max-requests wait at all stages, nor more than
 * max-queue bytes and one message. Else a request is answered.
 */
bool relay_admits_at(struct relay *relay, const struct call *call, enum desk_stage stage);

#endif
