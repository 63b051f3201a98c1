/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_METHODS_H
#define BROKER_RELAY_RELAY_METHODS_H

#include "broker/session/hop.h"

/* The rows of the editor's methods. */

/* Never NULL: unknown methods have a row too. */
const struct method *relay_method_of(const struct message *message);

/*
 * Reads cwd and additionalDirectories, in this order, from a message that opens a session.
 * NULL-terminated; the caller owns the list.
 */
char **relay_directories_of(const struct message *message);

#endif
