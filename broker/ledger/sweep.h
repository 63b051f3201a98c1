/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_SWEEP_H
#define BROKER_LEDGER_SWEEP_H

#include "broker/ledger/collect.h"

/*
 * What brokers that were killed have made elsewhere before any record told of it: the provider
 * knows of it (provider_sweep), and is told which sandboxes records that are not stopped still
 * need. Loop thread.
 */
struct sweep;

/*
 * Begins after `delay_ms`; says in the log what it did. Of the configuration, `done`, `data` and
 * `is_discarded` are not used; the rest is borrowed. NULL where the provider has nothing to sweep.
 */
struct sweep *sweep_start(const struct collect_config *config, int delay_ms);

/* What is left is for the next start. NULL is fine. */
void sweep_destroy(struct sweep *sweep);

#endif
