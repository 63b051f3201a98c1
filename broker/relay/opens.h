/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_OPENS_H
#define BROKER_RELAY_OPENS_H

#include "broker/session/hop.h"

/* Of a request that opens a session: a part of it. */
struct opens {
	char **roots;    // owned, NULL-terminated; cwd and the further ones; NULL: the session has
	                 // them
	char **notices;  // owned, NULL-terminated; for the user once it is there; or NULL
	bool has_opened; // it is there
};

struct opens *opens_of(struct request *request);               // made where there is none
const struct opens *opens_find(const struct request *request); // NULL: it opens none

/* The session that it has opened; NULL: none. */
struct session *opens_session(struct relay *relay, const struct request *request);

#endif
