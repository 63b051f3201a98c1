/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STATE_FOLDER_H
#define BROKER_LEDGER_STATE_FOLDER_H

/*
 * Where records, stores and copies are kept: acp-broker in $XDG_STATE_HOME, or
 * in $HOME/.local/state (XDG Base Directory Specification; a relative
 * $XDG_STATE_HOME counts as not set). NULL where neither is set. Owned by the
 * caller. Nothing is made.
 */
char *state_folder_name(const char *const *environment);

/* The store of a workspace, in the state folder; by its path here. Owned by the caller. */
char *state_folder_store(const char *state_folder, const char *local_root);

enum { STATE_FOLDER_NAME_SIZE = 17 };
/*
 * What a workspace's store calls a sandbox of it (bases/NAME), by its root there and by its
 * instance (may be NULL): another sandbox may have the same root, and never held what this one did.
 * Returns name.
 */
const char *state_folder_sandbox(char name[STATE_FOLDER_NAME_SIZE], const char *backend,
	const char *profile, const char *runtime_root, const char *instance);

#endif
