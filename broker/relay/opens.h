/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_OPENS_H
#define BROKER_RELAY_OPENS_H

#include "broker/session/hop.h"

/* A part of a request that opens a session. */
struct opens {
	char **roots;    // owned, NULL-terminated; cwd first; NULL: the session has them now
	char **notices;  // owned, NULL-terminated; for the user once the session exists; or NULL
	bool has_opened; // the session exists
};

struct opens *opens_of(struct request *request);               // creates it if missing
const struct opens *opens_find(const struct request *request); // NULL: the request opens no session

/* The session that the request has opened, or NULL. */
struct session *opens_session(struct relay *relay, const struct request *request);

#endif
