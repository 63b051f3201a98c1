/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_HANDSHAKE_H
#define BROKER_RELAY_HANDSHAKE_H

#include "broker/session/hop.h"

/* initialize, authenticate and logout: what their requests and answers mean to the relay. */

/*
 * True if the editor's initialize has the form of ACP version 2. It is answered with an error that
 * names the supported versions, so that the editor can fall back. No agent is started.
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

/* Repeats the editor's initialize and authenticate to another agent, before all other messages. */
void handshake_repeat(struct peer *peer);

/* What the agent supports, as it has said (ACP, AgentCapabilities). */
struct offers {
	bool load;   // session/load
	bool resume; // session/resume
	bool close;  // session/close
};

const struct offers *handshake_offers(struct relay *relay);

/*
 * Whether an initialize of the editor was answered with a result. Another agent gets the same one.
 */
bool handshake_was_made(struct relay *relay);

#endif
