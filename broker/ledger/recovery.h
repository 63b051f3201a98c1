/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECOVERY_H
#define BROKER_LEDGER_RECOVERY_H

#include "broker/ledger/collect.h"

/*
 * What a starting broker does for those that are gone: looks for records whose broker is not
 * there any more, of every profile of the configuration, and finishes what each has begun
 * (broker/ledger/collect.h), by that profile's own settings and provider. One after the other:
 * those of its own profile first, the one that was used last before the others; what failed at an
 * earlier start after all the rest, the one that was tried last at the end. What fails is logged
 * and stays for the next start; what no profile of the configuration is for is told by its name,
 * and left. Never touches what a living broker has. Last of all it ends the finished copies that
 * were not used for their profile's copy-max-age. Loop thread only.
 */
struct recovery;

enum { RECOVERY_RECORDS_MAX = 64 }; // at one start; the rest is for the next one

/* Everything is borrowed until the recovery is destroyed. */
struct recovery_config {
	struct collect_config collect; // of the broker's own profile; done, data and is_discarded
	                               // are not used
	const struct profile *others;  // the other profiles of the configuration
	size_t other_count;
	const struct registry *registry; // their providers; may be NULL where there are none
	int delay_ms;                    // before it begins
	int timeout_ms;                  // after that it ends; what it has started is stopped again
};
struct recovery *recovery_start(const struct recovery_config *config);

/*
 * There is something more to finish: looks once more, as soon as what is in hand has ended, with
 * recovery-timeout anew. NULL is fine.
 */
void recovery_wake(struct recovery *recovery);

/*
 * Ends it early: nothing more is begun, and what it has started is stopped again (collect_stop).
 * True: done follows, once; it may destroy the recovery. False: there is nothing to wait for, also
 * where it is NULL.
 */
bool recovery_end(struct recovery *recovery, void (*done)(void *data), void *data);

/* What it has started goes on; a log line names that while it is being stopped. NULL is fine. */
void recovery_destroy(struct recovery *recovery);

#endif
