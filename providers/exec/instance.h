/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_INSTANCE_H
#define PROVIDERS_EXEC_INSTANCE_H

#include "providers/exec/claim.h"
#include "providers/exec/command.h"
#include "providers/exec/profile.h"

/*
 * One instance of a profile that makes instances: its note and lock on this machine (claim.h), and
 * the platform's commands start, state, stop and destroy. Only a broker that holds the lock
 * exclusively starts or ends the instance; other brokers wait meanwhile. Loop thread.
 *
 * The caller gives one order at a time. `done` is called once, after the call has returned, and
 * never after exec_instance_destroy.
 */
struct exec_instance;

struct exec_instance_config {
	const struct provider_context *context;
	const struct exec_profile *profile; // borrowed until the end
	/* These three are borrowed only while exec_instance_create runs. */
	const char *directory; // of the request; may be NULL
	const char *reference; // an earlier name; NULL: made from profile and directory
	const char *born;      // which instance of that name (exec_note.born); NULL: any
	bool is_new;           // an instance that no other session shares
	void (*on_progress)(void *data, const char *text); // may be NULL
	void *data;
};

typedef void exec_instance_done(void *data, const struct error *err);

struct exec_instance *exec_instance_create(const struct exec_instance_config *config);

/* Kills its running command, if any, and releases the lock. NULL is fine. */
void exec_instance_destroy(struct exec_instance *instance);

/*
 * Asks whether the instance runs, and starts it if it has stopped. If it does not exist, this makes
 * it, or fails with SANDBOX_NOT_FOUND if a reference was given. EXEC_NAME_INVALID: start printed no
 * name. If making it fails, the part that exists is destroyed, provided that its name is known.
 */
void exec_instance_bring(struct exec_instance *instance, exec_instance_done *done);

/* Takes the lock and reads the note, and runs no command. */
void exec_instance_open(struct exec_instance *instance, exec_instance_done *done);

/*
 * Runs the command `stop` at the end of a session. Does nothing if another broker uses the
 * instance, or if the profile has no such command.
 */
void exec_instance_rest(struct exec_instance *instance, exec_instance_done *done);

/*
 * Whether exec_instance_rest, exec_instance_remove or exec_instance_withdraw has stopped or
 * destroyed the instance: then no process is left in it.
 */
bool exec_instance_has_ended(const struct exec_instance *instance);

/* Removes the instance and its note. SANDBOX_IN_USE: another broker uses it. */
void exec_instance_remove(struct exec_instance *instance, exec_instance_done *done);

/* Removes only the note: the platform may still have the instance. */
void exec_instance_forget(struct exec_instance *instance, exec_instance_done *done);

/*
 * Cancels what is under way, and undoes exec_instance_bring: removes the instance if
 * exec_instance_bring has made it and `is_used` is false. Otherwise stops it if exec_instance_bring
 * has started it.
 */
void exec_instance_withdraw(struct exec_instance *instance, bool is_used, exec_instance_done *done);

/*
 * Asks whether the connection was lost because the instance has stopped or is gone. Then calls
 * `done` with the error `lost`, and adds the answer to it.
 */
void exec_instance_explain(
	struct exec_instance *instance, const struct error *lost, exec_instance_done *done);

/*
 * Asks the platform for the state, which the profile must have, and waits at most command-timeout
 * for the end of EXEC_STATE_WAITING. This is no order: it may be asked at any time. The instance
 * must outlive the asking.
 */
struct exec_ask *exec_instance_ask(struct exec_instance *instance, exec_command_done *done,
	void *data, struct error *err) ATTR_NODISCARD;

/* Adds to an error that such a state says why. A running instance adds nothing. */
void exec_instance_add_state(
	const struct exec_instance *instance, int status, const char *words, struct error *err);

/* Borrowed; valid after exec_instance_bring or exec_instance_open has succeeded. */
const char *exec_instance_reference(const struct exec_instance *instance);
const char *exec_instance_born(const struct exec_instance *instance);
const char *exec_instance_name(const struct exec_instance *instance); // NULL: not known

/*
 * Whether exec_instance_bring has run start: then no process of an earlier run is left in it. Valid
 * after exec_instance_bring has succeeded.
 */
bool exec_instance_was_started(const struct exec_instance *instance);

#endif
