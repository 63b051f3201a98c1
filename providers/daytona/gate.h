/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_GATE_H
#define PROVIDERS_DAYTONA_GATE_H

#include "providers/daytona/profile.h"
#include "providers/ssh/admission.h"

/*
 * The way into a sandbox: the tokens of the SSH gateway. A new token makes all earlier tokens of
 * the sandbox invalid, and the gateway checks a token only when a connection is made. So we ask for
 * a token right before we connect. Until the connection stands, we hold a lock that all brokers on
 * this machine share (providers/daytona/note.h). Loop thread.
 */
struct daytona_gate;

/* All borrowed until it is destroyed. */
struct daytona_gate_config {
	const struct provider_context *context;
	struct daytona_api *api;
	const struct daytona_profile *profile;
	const char *id, *name; // of the sandbox, which must run
	void *data;
};

typedef void daytona_gate_done(void *data, const struct error *err);

/*
 * Asks for the first token, for the first connection; then host and port are known. done is raised
 * once, not before it returns, and not after daytona_gate_destroy.
 */
struct daytona_gate *daytona_gate_open(
	const struct daytona_gate_config *config, daytona_gate_done *done);
void daytona_gate_destroy(struct daytona_gate *gate); // after those who use it; NULL is fine

/* The connection was lost: from now on, the service must say before each token that it runs. */
void daytona_gate_look(struct daytona_gate *gate);

const char *daytona_gate_host(const struct daytona_gate *gate);
int daytona_gate_port(const struct daytona_gate *gate);

extern const struct ssh_admission daytona_admission; // its data is the gate

#endif
