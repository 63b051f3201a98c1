/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_CLAIM_H
#define BROKER_LEDGER_RECORD_CLAIM_H

#include <sys/types.h>

#include "broker/ledger/record.h"

/*
 * Takes an ACP session over from a broker that is gone: the records (broker/ledger/record.h) in
 * which it is are locked, so that of two brokers that want it one alone gets it. The locks say that
 * what is in them is finished, and not that a session runs there. What is in their sandboxes is not
 * touched. All of this may block.
 */
enum claim_outcome {
	CLAIM_NONE,   // no record has it: it may be known to the agent all the same
	CLAIM_TAKEN,  // it is ours until record_claim_finish
	CLAIM_HELD,   // a broker that lives has it, see `holder`
	CLAIM_FAILED, // whether one has it cannot be known, see `err`
};

struct record_claim {
	struct record *records; // owned
	int *lock_fds;          // owned; of each
	size_t count;
	pid_t holder;                   // 0: it cannot be seen from here
	char holder_id[RECORD_ID_SIZE]; // the record
	bool is_ending;                 // the holder only finishes what is in it, or ends
	bool has_failed;                // CLAIM_FAILED
	struct error err;               // of that
};

/* Who asks: records of other profiles and backends are not looked at. */
struct claim_request {
	const char *state_folder, *profile, *backend, *session_id;
};

/* What this process itself has in use is no obstacle. Nothing is made where there are no records.
 */
enum claim_outcome record_claim_take(
	const struct claim_request *request, struct record_claim *out_claim);

/*
 * Another record of this process has the session now: takes it out of these, and writes them down
 * with the state that the caller has given each. ERROR_NOT_FOUND where none has it as far as is
 * written: then they keep it.
 */
bool record_claim_move(const struct claim_request *request, struct record_claim *claim,
	struct error *err) ATTR_NODISCARD;

void record_claim_finish(struct record_claim *claim); // unlocks

#endif
