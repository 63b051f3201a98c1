/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_CLAIM_H
#define PROVIDERS_DAYTONA_CLAIM_H

#include "providers/daytona/account.h"
#include "providers/daytona/identity.h"
#include "providers/provider.h"

/*
 * The claim of this broker on a sandbox that it uses: the sandbox's name, its note, and a lock that
 * shows that it is in use (providers/daytona/note.h). The pool does the work. Loop thread.
 *
 * At most one order at a time. Its done is raised once, not before the call returns, and never
 * after daytona_claim_destroy.
 */
struct daytona_claim;

/* Borrowed during creation, except the context and the data. */
struct daytona_claim_config {
	const struct provider_context *context;
	const char *profile;
	const struct daytona_account *account; // the account that makes or made it
	const char *directory;                 // of the request; may be NULL
	const char *reference;                 // the wanted name; NULL: by profile and directory
	bool is_new;                           // a new one: that name and a random part
	bool is_transient;                     // for the note: delete it when its broker is gone
	long long timeout_ms;                  // limit of the wait for an exclusive lock
	void *data;
};

typedef void daytona_claim_done(void *data, const struct error *err);

struct daytona_claim *daytona_claim_create(const struct daytona_claim_config *config);

/* Releases the lock; a running order ends by itself. NULL is fine. */
void daytona_claim_destroy(struct daytona_claim *claim);

/*
 * Determines the name, unless the caller gives the name of an existing sandbox. Takes a shared
 * lock, and writes the note if there is none. Waits while a broker holds the exclusive lock. Then
 * the identity is known.
 */
void daytona_claim_take(struct daytona_claim *claim, const char *name, daytona_claim_done *done);

/*
 * Takes the exclusive lock. ERROR_UNAVAILABLE if other brokers use the sandbox; then this broker no
 * longer holds a lock.
 */
void daytona_claim_take_alone(struct daytona_claim *claim, daytona_claim_done *done);

/*
 * The account in the note, for people, if it is another account; then the service may not find the
 * sandbox although it exists. NULL: it is this account. Borrowed; known once the claim is taken.
 */
const char *daytona_claim_others(const struct daytona_claim *claim);

/* Call it when this account has seen the sandbox: writes this account into the note. */
void daytona_claim_adopt(struct daytona_claim *claim, daytona_claim_done *done);

/*
 * Call it when the sandbox contains something that exists nowhere else: the note then says that the
 * sandbox outlives its broker.
 */
void daytona_claim_keep(struct daytona_claim *claim, daytona_claim_done *done);

/*
 * Call it with the exclusive lock when the sandbox is gone: removes the note and releases the lock.
 */
void daytona_claim_forget(struct daytona_claim *claim, daytona_claim_done *done);

/* Whether an order is running. */
bool daytona_claim_is_busy(const struct daytona_claim *claim);

void daytona_claim_release(struct daytona_claim *claim);

/* Borrowed; has the name that was taken. */
const struct daytona_identity *daytona_claim_identity(const struct daytona_claim *claim);

#endif
