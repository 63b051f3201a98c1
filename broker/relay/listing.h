/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_H
#define BROKER_RELAY_LISTING_H

#include "broker/session/hop.h"

/*
 * session/list if several agents run: the pages of one agent follow those of the other. The cursor
 * (ACP: opaque to the editor) then names its agent: "acp-broker:AGENT:LISTED:CURSOR". The agent's
 * own cursor comes last; LISTED is 1 once any agent has given a list. An agent that fails, or is
 * silent for start-timeout, gives an empty page. If all fail, the editor gets the last one's error.
 * With one agent nothing is changed.
 */

/*
 * The agent to ask. NULL if none can be started, or if the cursor's agent has ended and no agent
 * follows it; then *out_is_over is true and the answer is an empty page.
 */
struct peer *listing_peer(struct relay *relay, const struct call *call, bool *out_is_over);

/* Hooks of struct method. */
bool listing_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool listing_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool listing_on_error(struct relay *relay, struct request *request, struct span error);

extern const char listing_empty[]; // an empty page, the last one

#endif
