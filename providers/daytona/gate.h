/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_GATE_H
#define PROVIDERS_DAYTONA_GATE_H

#include "providers/daytona/profile.h"
#include "providers/ssh/admission.h"

/*
 * The way into a sandbox: the tokens of the SSH gateway. One that is asked for makes all earlier
 * ones of the sandbox void, and it is looked at only while a connection is made; so it is
 * asked for right before, under a lock of all brokers here that is held until the connection stands
 * (providers/daytona/note.h). Loop thread.
 */
struct daytona_gate;

/* Everything is borrowed until it is destroyed. */
struct daytona_gate_config {
	const struct provider_context *context;
	struct daytona_api *api;
	const struct daytona_profile *profile;
	const char *id, *name; // of the sandbox, which runs
	void *data;
};

typedef void daytona_gate_done(void *data, const struct error *err);

/*
 * Asks for the first token, which is for the first connection; host and port are known then. done
 * is raised once, not before it returns, unless it is destroyed before.
 */
struct daytona_gate *daytona_gate_open(
	const struct daytona_gate_config *config, daytona_gate_done *done);
void daytona_gate_destroy(struct daytona_gate *gate); // after who asks it; NULL is fine

const char *daytona_gate_host(const struct daytona_gate *gate);
int daytona_gate_port(const struct daytona_gate *gate);

extern const struct ssh_admission daytona_admission; // its data is the gate

#endif
