/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_CLAIM_IMPL_H
#define BROKER_RELAY_RELAY_CLAIM_IMPL_H

#include "broker/ledger/record_claim.h"
#include "broker/relay/relay_claim.h"

/*
 * Shared by relay_claim.c (until the request goes on) and relay_claim_opened.c (what became of it);
 * nobody else includes this.
 */

/* A job on the pool. It outlives a claim that is destroyed. */
struct claim_work {
	struct pool_job job;
	struct claim *claim;
	char *state_folder, *profile, *session_id; // owned
	const char *backend;                       // static
	enum claim_outcome outcome;
	struct record_claim records;
	bool leaves_some; // something is still in a sandbox and must be collected
};

struct claim {
	struct list link; // claims_of
	struct relay *relay;
	struct peer *peer; // whose record will have the session; NULL: the request is under way
	char *id;          // owned, raw; of the request; NULL: it was answered
	char *cwd;         // owned; may be NULL
	struct waiting waiting;  // the request, while it waits
	struct claim_work *work; // owned
	bool is_let_go;          // no longer needed: freed once its job has ended
	ev_timer again;
	double began; // ev_now
	bool has_said_waiting;
};

/* The struct claim list; a part of the relay. */
struct list *claims_of(struct relay *relay);

/*
 * Releases the records that were taken over, as soon as no job uses them. The recovery has skipped
 * these records meanwhile; if changes are left in their sandbox, this wakes the recovery.
 */
void claim_let_go(struct claim *claim);

/* Notes what is still in a sandbox of the records that were taken over. */
void claim_note_left(struct claim_work *work);

/* The claim of a request that was passed on, by its id; or NULL. */
struct claim *claim_find(struct relay *relay, struct span id);

struct claim_request claim_request_of(const struct claim_work *work);

bool claim_submit(struct claim *claim, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job), struct error *err) ATTR_NODISCARD;

/*
 * The claim of a job that has ended. NULL if the claim was released meanwhile; then this has freed
 * it.
 */
struct claim *claim_of(struct pool_job *job);

#endif
