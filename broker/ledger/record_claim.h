/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_CLAIM_H
#define BROKER_LEDGER_RECORD_CLAIM_H

#include <sys/types.h>

#include "broker/ledger/record.h"

/*
 * Takes an ACP session over from a dead broker. It locks the records (broker/ledger/record.h) that
 * have the session, so that only one of two brokers gets it. The locks mark the records as being
 * finished, not as running a session. Does not touch their sandboxes. All functions may block.
 */
enum claim_outcome {
	CLAIM_NONE,   // no record has it; the agent may know it nevertheless
	CLAIM_TAKEN,  // ours until record_claim_finish
	CLAIM_HELD,   // a running broker has it: `holder`
	CLAIM_FAILED, // it is not known whether a broker has it: `err`
};

struct record_claim {
	struct record *records; // owned
	int *lock_fds;          // owned; of each record
	size_t count;
	pid_t holder;                   // 0: its process is not visible from here
	char holder_id[RECORD_ID_SIZE]; // its record
	bool is_ending;   // the holder is ending, or only finishes another broker's work
	bool has_failed;  // CLAIM_FAILED
	struct error err; // for CLAIM_FAILED
};

/* Who asks. Records of other profiles and backends are ignored. */
struct claim_request {
	const char *state_folder, *profile, *backend, *session_id;
};

/*
 * Records that this process itself uses are no obstacle. If there is no folder of records, none is
 * created.
 */
enum claim_outcome record_claim_take(
	const struct claim_request *request, struct record_claim *out_claim);

/*
 * Another record of this process has the session now: removes the session from these records, and
 * saves them with the states that the caller has set. ERROR_NOT_FOUND if no saved record of this
 * process has it; then these keep it.
 */
bool record_claim_move(const struct claim_request *request, struct record_claim *claim,
	struct error *err) ATTR_NODISCARD;

void record_claim_finish(struct record_claim *claim); // unlocks

#endif
