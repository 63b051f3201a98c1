/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_COLLECT_H
#define BROKER_LEDGER_COLLECT_H

#include "broker/config/config.h"
#include "broker/ledger/keeper.h"
#include "broker/ledger/record.h"

/*
 * Finishes what a dead broker has begun: takes the lock of its record, gets the sandbox ready,
 * syncs for the last time, writes the receipt, and keeps or ends the sandbox as the record says. It
 * writes a failure into the record. After a failure the sandbox is as before: if it was started in
 * order to collect, it is stopped again before done is called. Loop thread only.
 */
struct collect;

enum collect_outcome {
	COLLECT_DONE,
	COLLECT_HELD,   // a running broker has the record: nothing was done
	COLLECT_FAILED, // the error says why
};

/* `record` is the record as it was before the collect; NULL if it could not be read. */
typedef void collect_done(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err);

/* All pointers are borrowed until the collect is destroyed. */
struct collect_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct provider *provider;
	const struct profile *profile; // the record's
	const char *state_folder;
	const char *home;                    // the user's; may be NULL
	const struct transport_tools *tools; // may be NULL
	bool is_discarded; // ends the sandbox without collecting, and removes the record
	bool ends;         // also syncs a stopped sandbox once more, then ends it
	/* Like keeper_listener.on_state, for this record. May be NULL. */
	void (*on_state)(void *data, const struct keeper_state *state);
	collect_done *done;
	void *data;
};

/*
 * Calls done exactly once, after this returns; never if it is destroyed first. A record of a
 * stopped sandbox is done at once, unless is_discarded or ends is set.
 */
struct collect *collect_start(const struct collect_config *config, const char *id);

/* Whether its sandbox became ready at some time. */
bool collect_has_reached(const struct collect *collect);

/*
 * The end is urgent: its sync no longer waits for another broker's sync. False if it has not begun
 * its sync; then nobody knows how long it will take.
 */
bool collect_hurry(struct collect *collect);

/*
 * Ends it early: leaves the sync for another time, and stops the sandbox if the collect has started
 * it. Then calls done. False if there is nothing to stop, or it cannot be stopped; then done is not
 * called, and the caller destroys the collect.
 */
bool collect_stop(struct collect *collect);

/* Frees it; leaves the sandbox and the record as they are. NULL is fine. */
void collect_destroy(struct collect *collect);

#endif
