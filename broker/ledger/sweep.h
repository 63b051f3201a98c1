/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_SWEEP_H
#define BROKER_LEDGER_SWEEP_H

#include "broker/ledger/collect.h"

/*
 * Removes sandboxes that killed brokers created elsewhere and that no record mentions yet. The
 * provider knows them (provider_sweep). It gets the list of sandboxes that records still need,
 * because they are not stopped. Loop thread.
 */
struct sweep;

/*
 * Begins after `delay_ms` and logs what it did. Borrows the configuration, and does not use its
 * `done`, `data` and `is_discarded`. NULL if the provider has nothing to sweep.
 */
struct sweep *sweep_start(const struct collect_config *config, int delay_ms);

/* Leaves the rest for the next start. NULL is fine. */
void sweep_destroy(struct sweep *sweep);

#endif
