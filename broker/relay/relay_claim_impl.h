/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_RELAY_CLAIM_IMPL_H
#define BROKER_RELAY_RELAY_CLAIM_IMPL_H

#include "broker/ledger/record_claim.h"
#include "broker/relay/relay_claim.h"

/*
 * What relay_claim.c (until the request goes on) and relay_claim_opened.c (what became of it)
 * share; nobody else includes this.
 */

/* What is done on the pool; outlives the claim where that is destroyed. */
struct claim_work {
	struct pool_job job;
	struct claim *claim;
	char *state_folder, *profile, *session_id; // owned
	const char *backend;                       // static
	enum claim_outcome outcome;
	struct record_claim records;
	bool leaves_some; // in a sandbox that is still to be finished
};

struct claim {
	struct list link; // claims_of
	struct relay *relay;
	struct peer *peer;       // whose record is to have it; NULL while the request goes on
	char *id;                // owned; of the request; raw; NULL: it was answered
	char *cwd;               // owned; may be NULL
	struct waiting waiting;  // the request, while it waits
	struct claim_work *work; // owned
	bool is_let_go;          // nobody waits for it: freed once its job has ended
	ev_timer again;
	double began; // ev_now
	bool has_said_waiting;
};

/* Of struct claim: a part of the relay. */
struct list *claims_of(struct relay *relay);

/*
 * What was taken over is let go, as soon as no job has it in hand. The recovery has passed it over
 * meanwhile: where something is left in its sandbox, that looks once more.
 */
void claim_let_go(struct claim *claim);

/* What is still in a sandbox of those that were taken over. */
void claim_note_left(struct claim_work *work);

/* Of a request that was passed on, by its id; NULL: there is none. */
struct claim *claim_find(struct relay *relay, struct span id);

struct claim_request claim_request_of(const struct claim_work *work);

bool claim_submit(struct claim *claim, void (*run)(struct pool_job *job),
	void (*done)(struct pool_job *job), struct error *err) ATTR_NODISCARD;

/* Whose job has ended; NULL where it was let go meanwhile, and is freed. */
struct claim *claim_of(struct pool_job *job);

#endif
