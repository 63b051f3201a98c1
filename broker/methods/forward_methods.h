/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_FORWARD_METHODS_H
#define BROKER_METHODS_FORWARD_METHODS_H

#include "broker/session/hop.h"

/*
 * Lead a port of this machine to a port of a session's sandbox, for a program
 * (docs/schemas/forward.json). A port is open until the program closes it, or until the session or
 * its agent ends.
 */
void forward_methods_open(struct relay *relay, const struct call *call);
void forward_methods_close(struct relay *relay, const struct call *call);

#endif
