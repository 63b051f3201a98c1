/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_HANDSHAKE_H
#define BROKER_RELAY_HANDSHAKE_H

#include "broker/session/hop.h"

/* initialize, authenticate and logout: what their requests and answers mean to the relay. */

/*
 * True where an initialize of the editor's has the form of ACP version 2, which is answered with an
 * error that names the versions spoken, so that the editor can fall back. No agent is started.
 */
bool handshake_refuses(struct relay *relay, const struct call *call);

bool handshake_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool handshake_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
void handshake_on_over(struct relay *relay, struct request *request);
bool handshake_keep_authenticate(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool handshake_on_authenticated(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);
bool handshake_on_logged_out(
	struct relay *relay, struct request *request, const struct call *call, struct error *err);

/* A further agent: what the editor said to the first one is said to it again, ahead of the rest. */
void handshake_repeat(struct peer *peer);

/* What the agent has said that it takes (ACP, AgentCapabilities). */
struct offers {
	bool load;   // session/load
	bool resume; // session/resume
	bool close;  // session/close
};

const struct offers *handshake_offers(struct relay *relay);

/* Whether an initialize of the editor's was answered well: a further agent gets the same. */
bool handshake_was_made(struct relay *relay);

#endif
