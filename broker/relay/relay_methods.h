/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_METHODS_H
#define BROKER_RELAY_RELAY_METHODS_H

#include "broker/session/hop.h"

/* What the editor's methods mean. */

/* Never NULL: a method nobody told us about has a meaning too. */
const struct method *relay_method_of(const struct message *message);

/* cwd, then additionalDirectories, of a message that opens a session; NULL-terminated, owned. */
char **relay_directories_of(const struct message *message);

#endif
