/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LOGIN_LOOK_H
#define BROKER_RELAY_LOGIN_LOOK_H

#include "base/login_url.h"
#include "broker/session/hop.h"

/*
 * Looks for addresses of login pages in an agent's messages, and offers to open their ports
 * (broker/gate/grant_login.h). It reads only what an editor shows as a login: an elicitation with
 * an address, the methods of authentication, and an error that asks for a login. It never reads
 * what an agent says in its own words. Terminals are searched by the ToolHost.
 */

/*
 * The address of an elicitation. Call it before the request is sent on, and offer the port after
 * that: the user gets the elicitation without delay, and the question beside it.
 */
bool login_look_elicitation(const struct call *call, struct login_url *out);

/* The result of initialize. There is no session yet. */
void login_look_greeting(struct peer *peer, const struct call *call);

/* An answer to the editor's request, if it is an error with one of the codes of a login. */
void login_look_error(struct peer *peer, const struct request *request, const struct call *call);

#endif
