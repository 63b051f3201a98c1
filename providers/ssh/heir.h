/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_HEIR_H
#define PROVIDERS_SSH_HEIR_H

#include "providers/provider.h"

/*
 * Call it before processes begin to run elsewhere that go on without this broker. If the broker is
 * killed, the spawner starts the broker's heir (provider_context.heir), which connects once and
 * ends them, if it can log in without asking anybody. No secret is kept for it: its environment has
 * only what names files, and the agent of the keys (SSH_AUTH_SOCK). Does nothing if the broker has
 * no heir. Another call changes nothing.
 */
void heir_name(const struct provider_context *context);

#endif
