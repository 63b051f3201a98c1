/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_COLLECT_H
#define BROKER_LEDGER_COLLECT_H

#include "broker/config/config.h"
#include "broker/ledger/keeper.h"
#include "broker/ledger/record.h"

/*
 * Finishes what a broker that is gone has begun: takes the lock of its record, gets the sandbox
 * ready, syncs for the last time, writes the receipt, and keeps or ends the sandbox as the record
 * says. What fails is in the record, and leaves the sandbox as it was: what was started for it is
 * stopped again before done is raised. Loop thread only.
 */
struct collect;

enum collect_outcome {
	COLLECT_DONE,
	COLLECT_HELD,   // a broker that lives has it: nothing was done
	COLLECT_FAILED, // see the error
};

/* The record as it was before; NULL where it could not be read. */
typedef void collect_done(void *data, enum collect_outcome outcome, const struct record *record,
	const struct error *err);

/* Everything is borrowed until the collect is destroyed. */
struct collect_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct provider *provider;
	const struct profile *profile; // the record's
	const char *state_folder;
	const char *home;                    // the user's; may be NULL
	const struct transport_tools *tools; // may be NULL
	bool is_discarded; // ends the sandbox without collecting, and removes the record
	bool ends;         // syncs a stopped one, too, and then ends its sandbox
	/* As keeper_listener.on_state, of its record. May be NULL. */
	void (*on_state)(void *data, const struct keeper_state *state);
	collect_done *done;
	void *data;
};

/*
 * Raises done exactly once, unless it is destroyed before, and not before it returns. A record of
 * what is stopped is done at once, unless it is discarded or ends.
 */
struct collect *collect_start(const struct collect_config *config, const char *id);

/* Whether its sandbox was ready, whatever became of it then. */
bool collect_has_reached(const struct collect *collect);

/*
 * The end is urgent: no sync waits for another broker's any more. False: it has not come as far as
 * a sync, and nobody can say when it will.
 */
bool collect_hurry(struct collect *collect);

/*
 * Ends it early: the sync is left for another time, and what was started for it is stopped again.
 * Done follows. False: nothing has to be stopped, or can be, and nothing follows: destroy it.
 */
bool collect_stop(struct collect *collect);

/* What runs is left as it is, for another time. NULL is fine. */
void collect_destroy(struct collect *collect);

#endif
