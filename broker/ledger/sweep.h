/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_SWEEP_H
#define BROKER_LEDGER_SWEEP_H

#include "broker/ledger/collect.h"

/*
 * Removes what killed brokers have created elsewhere before a record mentioned it. The provider
 * knows of it (provider_sweep) and gets the list of sandboxes that records still need, because they
 * are not stopped. Loop thread.
 */
struct sweep;

/*
 * Begins after `delay_ms` and logs what it did. Of the configuration, `done`, `data` and
 * `is_discarded` are not used; the rest is borrowed. NULL if the provider has nothing to sweep.
 */
struct sweep *sweep_start(const struct collect_config *config, int delay_ms);

/* Leaves the rest for the next start. NULL is fine. */
void sweep_destroy(struct sweep *sweep);

#endif
