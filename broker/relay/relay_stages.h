/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_STAGES_H
#define BROKER_RELAY_RELAY_STAGES_H

#include "broker/session/hop.h"

/* The stages of the relay's desk (broker/desk/desk.h): what a message may wait for. */

void relay_stages_init(struct relay *relay);

#endif
