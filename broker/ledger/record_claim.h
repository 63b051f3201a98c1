/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_CLAIM_H
#define BROKER_LEDGER_RECORD_CLAIM_H

#include <sys/types.h>

#include "broker/ledger/record.h"

/*
 * Takes an ACP session over from a dead broker. It locks the records (broker/ledger/record.h) that
 * have the session, so that only one of two brokers gets it. The lock files then say that this
 * broker finishes the records, not that it runs a session. Does not touch their sandboxes. All
 * functions may block.
 */
enum claim_outcome {
	CLAIM_NONE,   // no record has the session; the agent may still know it
	CLAIM_TAKEN,  // ours until record_claim_finish
	CLAIM_HELD,   // a running broker has it: `holder`
	CLAIM_FAILED, // the records do not tell whether a broker has it: `err`
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

/* A claim, and the profile and backend whose records it considers. */
struct claim_request {
	const char *state_folder, *profile, *backend, *session_id;
};

/* Ignores the records that this process itself uses. Does not create the folder of records. */
enum claim_outcome record_claim_take(
	const struct claim_request *request, struct record_claim *out_claim);

/*
 * Call it once another record of this process has the session: removes the session from these
 * records, and saves them with the states that the caller has set. ERROR_NOT_FOUND if no saved
 * record of this process has the session; then these records keep it.
 */
bool record_claim_move(const struct claim_request *request, struct record_claim *claim,
	struct error *err) ATTR_NODISCARD;

void record_claim_finish(struct record_claim *claim); // unlocks

#endif
