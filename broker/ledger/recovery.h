/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECOVERY_H
#define BROKER_LEDGER_RECOVERY_H

#include "broker/ledger/collect.h"

/*
 * At its start a broker finishes the work of dead brokers. It looks for records without a running
 * broker, of every profile of the configuration, and collects from their sandboxes
 * (broker/ledger/collect.h) with that profile's own settings and provider, one after the other. Its
 * own profile comes first; within a profile, the most recently used record. Records that failed at
 * an earlier start come last, the most recently tried one at the very end. A failure is logged, and
 * the record stays for the next start. A record of an unknown profile is logged by name and left
 * alone. The recovery never touches a record or sandbox of a running broker. At the end it removes
 * finished copies that have not been used for longer than their profile's copy-max-age. Loop thread
 * only.
 */
struct recovery;

enum { RECOVERY_RECORDS_MAX = 64 }; // per start; the others are left for the next start

/* All pointers are borrowed until the recovery is destroyed. */
struct recovery_config {
	struct collect_config collect; // for the own profile; without done, data, is_discarded
	const struct profile *others;  // the other profiles of the configuration
	size_t other_count;
	const struct registry *registry; // their providers; may be NULL if there are none
	int delay_ms;                    // until it begins
	int timeout_ms;                  // limit of it all; then it stops again what it has started
};
struct recovery *recovery_start(const struct recovery_config *config);

/*
 * There is more to finish: looks again once the current record is done, with a new
 * recovery-timeout. NULL is fine.
 */
void recovery_wake(struct recovery *recovery);

/*
 * Ends it early: begins no further record, and stops the running collect (collect_stop). True: done
 * follows, once; it may destroy the recovery. False: there is nothing to wait for; also for NULL.
 */
bool recovery_end(struct recovery *recovery, void (*done)(void *data), void *data);

/*
 * Frees it without stopping what it has started; a log line names a sandbox that is about to stop.
 * NULL is fine.
 */
void recovery_destroy(struct recovery *recovery);

#endif
