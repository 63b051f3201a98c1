/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_RECOVER_H
#define BROKER_RELAY_RELAY_RECOVER_H

#include "broker/ledger/collect.h"
#include "broker/session/hop.h"

/*
 * The first agent was greeted: in a while what brokers that are gone have left is collected, in the
 * background. The new session comes first. At the end it is left where it is.
 */
void relay_recover(struct peer *peer);

/* How what a sandbox of the broker's own profile has left is collected; without done and data. */
struct collect_config relay_collect_config(const struct relay *relay);

/* Something was left that can be collected now (recovery_wake). */
void relay_recover_wake(struct relay *relay);

/* The relay ends: what is under way is left where it is. */
void relay_recover_end(struct relay *relay);

#endif
