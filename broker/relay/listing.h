/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LISTING_H
#define BROKER_RELAY_LISTING_H

#include "broker/session/hop.h"

/*
 * session/list where several agents run: the pages of one agent after those of
 * the other. A cursor (ACP: opaque to the editor) then names the agent it is of,
 * "acp-broker:AGENT:LISTED:CURSOR", its own at the end; LISTED is 1 once any
 * agent has given a list. An agent that fails, or is silent for start-timeout,
 * gives an empty page; only where all fail is the last one's error told. With
 * one agent nothing is changed.
 */

/*
 * The agent to ask; NULL where none can be started, or (*out_is_over) where the
 * cursor's has ended and none comes after it: then an empty page is the answer.
 */
struct peer *listing_peer(struct relay *relay, const struct call *call, bool *out_is_over);

/* As the hooks of struct method. */
bool listing_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool listing_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool listing_on_error(struct relay *relay, struct request *request, struct span error);

extern const char listing_empty[]; // a page with nothing, after which nothing comes

#endif
