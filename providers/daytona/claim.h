/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_CLAIM_H
#define PROVIDERS_DAYTONA_CLAIM_H

#include "providers/daytona/account.h"
#include "providers/daytona/identity.h"
#include "providers/provider.h"

/*
 * What this broker has of a sandbox here: its name, the note of it, and the lock that says that
 * it is in use (providers/daytona/note.h); on the worker pool. Loop thread.
 *
 * At most one order at a time, whose done is raised once, not before it returns, and never after
 * daytona_claim_destroy.
 */
struct daytona_claim;

/* Borrowed while it is created, but for the context and the data. */
struct daytona_claim_config {
	const struct provider_context *context;
	const char *profile;
	const struct daytona_account *account; // as whom it is made, or was
	const char *directory;                 // of the request; may be NULL
	const char *reference; // the name that is wanted; NULL: that of the profile and directory
	bool is_new;           // one of its own: that name and something random
	bool is_transient;     // as the note has it: it is deleted where its broker is gone
	long long timeout_ms;  // for who has it alone to let it go
	void *data;
};

typedef void daytona_claim_done(void *data, const struct error *err);

struct daytona_claim *daytona_claim_create(const struct daytona_claim_config *config);

/* Lets the lock go; what is under way is left to itself. NULL is fine. */
void daytona_claim_destroy(struct daytona_claim *claim);

/*
 * Finds the name, unless one is given (of a sandbox that is there); takes its lock, together with
 * others, and writes the note, unless there is one. Waits for who has it alone. The identity is
 * known then.
 */
void daytona_claim_take(struct daytona_claim *claim, const char *name, daytona_claim_done *done);

/*
 * Nobody else is to have it. ERROR_UNAVAILABLE where others do: then this one does not have it
 * any more, either.
 */
void daytona_claim_take_alone(struct daytona_claim *claim, daytona_claim_done *done);

/*
 * As whom the note says that it was made, for people, where that is not this account: then that the
 * service does not know it here says nothing about it. NULL: as this one. Borrowed; known once it
 * was taken.
 */
const char *daytona_claim_others(const struct daytona_claim *claim);

/* It was seen as this account: the note says so from now on. */
void daytona_claim_adopt(struct daytona_claim *claim, daytona_claim_done *done);

/* Something is in it that is nowhere else: the note says that it stays without its broker. */
void daytona_claim_keep(struct daytona_claim *claim, daytona_claim_done *done);

/* Once it is had alone and the sandbox is gone: removes the note, and lets it go. */
void daytona_claim_forget(struct daytona_claim *claim, daytona_claim_done *done);

/* An order is under way. */
bool daytona_claim_is_busy(const struct daytona_claim *claim);

void daytona_claim_release(struct daytona_claim *claim);

/* Borrowed; the name in it is the one that is had. */
const struct daytona_identity *daytona_claim_identity(const struct daytona_claim *claim);

#endif
