/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_AGENT_METHODS_H
#define BROKER_RELAY_RELAY_AGENT_METHODS_H

#include "broker/session/hop.h"

/* What the agent's methods mean. Never NULL: a method nobody told us about has a meaning too. */
const struct method *relay_agent_method_of(const struct message *message);

#endif
