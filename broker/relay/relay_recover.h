/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_RECOVER_H
#define BROKER_RELAY_RELAY_RECOVER_H

#include "broker/ledger/collect.h"
#include "broker/session/hop.h"

/*
 * The first agent was initialized: after a while, collects in the background what dead brokers have
 * left. The new session comes first.
 */
void relay_recover(struct peer *peer);

/* The settings for collecting from a sandbox of the broker's own profile; without done and data. */
struct collect_config relay_collect_config(const struct relay *relay);

/* Something that was left can be collected now (recovery_wake). */
void relay_recover_wake(struct relay *relay);

/*
 * The relay ends: interrupts the running sync, leaves it for another time, and stops the sandboxes
 * that were started for it. The relay does not finish before these have stopped;
 * relay_ops.finish_if_empty follows.
 */
void relay_recover_end(struct relay *relay);
bool relay_recover_is_under_way(struct relay *relay);

/* Frees everything without waiting. */
void relay_recover_finish(struct relay *relay);

#endif
