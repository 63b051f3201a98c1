/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_INSTANCE_H
#define PROVIDERS_EXEC_INSTANCE_H

#include "providers/exec/claim.h"
#include "providers/exec/profile.h"

/*
 * One instance of a profile that makes them: its note and lock on this machine (claim.h), and the
 * platform's commands start, state, stop and destroy. The last broker that has it holds its lock
 * alone while it starts or ends it; others wait meanwhile. Loop thread.
 *
 * At most one order at a time. Its done is raised once, not before it returns, and never after
 * exec_instance_destroy.
 */
struct exec_instance;

struct exec_instance_config {
	const struct provider_context *context;
	const struct exec_profile *profile; // borrowed until the end
	const char *directory; // borrowed during creation, as the next; of the request; may be NULL
	const char *reference; // an earlier name; NULL: that of profile and directory
	const char *born;      // wanted (exec_note.born); NULL: any
	bool is_new;           // of its own, for a session
	void (*on_progress)(void *data, const char *text); // may be NULL
	void *data;
};

typedef void exec_instance_done(void *data, const struct error *err);

struct exec_instance *exec_instance_create(const struct exec_instance_config *config);

/* Kills a command that runs, and releases the lock. NULL is fine. */
void exec_instance_destroy(struct exec_instance *instance);

/*
 * Finds out whether it runs, and starts it otherwise; makes it, unless a reference was given:
 * SANDBOX_NOT_FOUND. EXEC_NAME_INVALID: start printed no name. What a failed start has made is
 * destroyed, if its name is known.
 */
void exec_instance_bring(struct exec_instance *instance, exec_instance_done *done);

/* Only reads its note and takes the lock. */
void exec_instance_open(struct exec_instance *instance, exec_instance_done *done);

/*
 * Its session has ended: runs the command `stop`. Does nothing if another broker uses the instance,
 * or if the profile has no such command.
 */
void exec_instance_rest(struct exec_instance *instance, exec_instance_done *done);

/* Removes it and its note. SANDBOX_IN_USE: another broker uses it. */
void exec_instance_remove(struct exec_instance *instance, exec_instance_done *done);

/* Only its note: the platform's instance may remain. */
void exec_instance_forget(struct exec_instance *instance, exec_instance_done *done);

/*
 * Cancels what is under way, and takes back what this one has done: removes what it has made,
 * unless it `is_used`, and stops what it has started.
 */
void exec_instance_withdraw(struct exec_instance *instance, bool is_used, exec_instance_done *done);

/* Whether it was lost because it has stopped or is gone; raised with the error, which may change.
 */
void exec_instance_explain(
	struct exec_instance *instance, const struct error *lost, exec_instance_done *done);

/* Borrowed; valid once it was brought or opened. */
const char *exec_instance_reference(const struct exec_instance *instance);
const char *exec_instance_born(const struct exec_instance *instance);
const char *exec_instance_name(const struct exec_instance *instance); // NULL: not known

/* Whether start was run: nothing of an earlier run is left in it. Valid once it was brought. */
bool exec_instance_was_started(const struct exec_instance *instance);

#endif
