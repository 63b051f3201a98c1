/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_CLAIM_H
#define PROVIDERS_EXEC_CLAIM_H

#include "providers/exec/profile.h"
#include "providers/notes.h"

/*
 * What this machine keeps about an instance: its note, and a lock that shows that a broker uses it
 * (providers/notes.h). The worker pool reads and writes the files. Loop thread.
 *
 * The caller gives one order at a time. `done` is called once, after the call has returned, and
 * never after exec_claim_destroy.
 */
struct exec_claim;

enum { EXEC_BORN_SIZE = 17 };

struct exec_note {
	char *profile;             // owned
	char *workspace;           // owned; the real path; NULL: unknown
	char *instance;            // owned; NULL: the platform has not named it yet
	char *reach;               // owned; exec_profile.reach of that time; may be NULL
	char born[EXEC_BORN_SIZE]; // differs for a later instance of the same name
	bool is_transient;         // a later broker removes it if this one has ended
};

void exec_note_finish(struct exec_note *note); // zeroed is fine

/* The folder of the notes. Its functions block: call them on the worker pool. */
struct notes exec_notes(
	const struct provider_context *context, const struct exec_platform *platform);
bool exec_note_read(const struct notes *notes, const char *name, struct exec_note *out_note,
	struct error *err) ATTR_NODISCARD;

/* Borrowed only while exec_claim_create runs, except the context and the data. */
struct exec_claim_config {
	const struct provider_context *context;
	const struct exec_profile *profile; // its name, platform, variant and reach
	const char *directory;              // of the request; may be NULL
	const char *reference; // a name that must have a note; NULL: made from the other fields
	bool is_new;           // the name gets a random part, so that no other session has it
	bool is_transient;     // for the note
	long long timeout_ms;  // how long to wait for a broker that holds the lock exclusively
	void *data;
};

typedef void exec_claim_done(void *data, const struct error *err);

struct exec_claim *exec_claim_create(const struct exec_claim_config *config);
void exec_claim_destroy(struct exec_claim *claim); // releases the lock; NULL is fine

/*
 * Finds the name, takes its lock and reads the note. The lock is exclusive if no other broker has
 * it, otherwise shared. Waits while another broker holds it exclusively. ERROR_NOT_FOUND: there is
 * no note for the reference.
 */
void exec_claim_take(struct exec_claim *claim, exec_claim_done *done);

/* Makes the lock a shared one. */
void exec_claim_share(struct exec_claim *claim, exec_claim_done *done);

/*
 * Makes the lock an exclusive one. ERROR_UNAVAILABLE: other brokers share it; then this broker has
 * lost its lock, too.
 */
void exec_claim_take_alone(struct exec_claim *claim, exec_claim_done *done);

/*
 * Writes the note. The instance's name is copied. NULL: it is not known yet, and `born` gets a new
 * random value.
 */
void exec_claim_write(struct exec_claim *claim, const char *instance, exec_claim_done *done);

/* Removes the note and releases the lock, which must be exclusive. */
void exec_claim_forget(struct exec_claim *claim, exec_claim_done *done);

/* Whether an order is under way. */
bool exec_claim_is_busy(const struct exec_claim *claim);

/* Borrowed; valid after exec_claim_take and while no order is under way. */
const char *exec_claim_name(const struct exec_claim *claim);
const struct exec_note *exec_claim_note(const struct exec_claim *claim);

#endif
