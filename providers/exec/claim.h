/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_CLAIM_H
#define PROVIDERS_EXEC_CLAIM_H

#include "providers/exec/profile.h"
#include "providers/notes.h"

/*
 * What this machine keeps about an instance: its note, and the lock that says that it is in use
 * (providers/notes.h). Works on the pool. Loop thread.
 *
 * At most one order at a time. Its done is raised once, not before it returns, and never after
 * exec_claim_destroy.
 */
struct exec_claim;

enum { EXEC_BORN_SIZE = 17 };

struct exec_note {
	char *profile;             // owned
	char *workspace;           // owned; the real path; NULL: unknown
	char *instance;            // owned; NULL: the platform has not named it yet
	char born[EXEC_BORN_SIZE]; // tells it from a later instance of the same note
	bool is_transient;         // removed when its broker is gone
};

void exec_note_finish(struct exec_note *note); // zeroed is fine

/* Blocks: for the worker pool. The note's folder. */
struct notes exec_notes(
	const struct provider_context *context, const struct exec_platform *platform);
bool exec_note_read(const struct notes *notes, const char *name, struct exec_note *out_note,
	struct error *err) ATTR_NODISCARD;

/* Borrowed during creation, except the context and the data. */
struct exec_claim_config {
	const struct provider_context *context;
	const struct exec_profile *profile; // its name, platform and variant
	const char *directory;              // of the request; may be NULL
	const char *reference; // an earlier name, which must have a note; NULL: by the identity
	bool is_new;           // of its own: the name gets a random part
	bool is_transient;     // for the note
	long long timeout_ms;  // how long to wait for a broker that holds it alone
	void *data;
};

typedef void exec_claim_done(void *data, const struct error *err);

struct exec_claim *exec_claim_create(const struct exec_claim_config *config);
void exec_claim_destroy(struct exec_claim *claim); // releases the lock; NULL is fine

/*
 * Finds the name, takes its lock, alone if nobody else has it, and reads the note. Waits for a
 * broker that holds it alone. ERROR_NOT_FOUND: the reference has no note.
 */
void exec_claim_take(struct exec_claim *claim, exec_claim_done *done);

/* Shares the lock with other brokers from now on. */
void exec_claim_share(struct exec_claim *claim, exec_claim_done *done);

/* ERROR_UNAVAILABLE if others use it; then this broker no longer holds it, either. */
void exec_claim_take_alone(struct exec_claim *claim, exec_claim_done *done);

/* Writes the note. The instance's name is copied; NULL: not known yet, and `born` is a new one. */
void exec_claim_write(struct exec_claim *claim, const char *instance, exec_claim_done *done);

/* Removes the note, and releases the lock, which must be held alone. */
void exec_claim_forget(struct exec_claim *claim, exec_claim_done *done);

/* Nobody else can have the lock. Valid after exec_claim_take. */
bool exec_claim_is_busy(const struct exec_claim *claim);

/* Borrowed; valid after exec_claim_take, between two orders. */
const char *exec_claim_name(const struct exec_claim *claim);
const struct exec_note *exec_claim_note(const struct exec_claim *claim);

#endif
