/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_RECOVER_H
#define BROKER_RELAY_RELAY_RECOVER_H

#include "broker/ledger/collect.h"
#include "broker/session/hop.h"

/*
 * The first agent was greeted: in a while what brokers that are gone have left is collected, in the
 * background. The new session comes first.
 */
void relay_recover(struct peer *peer);

/* How what a sandbox of the broker's own profile has left is collected; without done and data. */
struct collect_config relay_collect_config(const struct relay *relay);

/* Something was left that can be collected now (recovery_wake). */
void relay_recover_wake(struct relay *relay);

/*
 * The relay ends: the sync under way is left for another time, and what was started for it is
 * stopped again. While that is under way the relay does not finish; relay_ops.finish_if_empty
 * follows.
 */
void relay_recover_end(struct relay *relay);
bool relay_recover_is_under_way(struct relay *relay);

/* Nothing is waited for. */
void relay_recover_finish(struct relay *relay);

#endif
