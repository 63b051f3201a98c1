/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STATE_FOLDER_H
#define BROKER_LEDGER_STATE_FOLDER_H

/*
 * The folder for records, stores and copies: acp-broker in $XDG_STATE_HOME, or in
 * $HOME/.local/state (XDG Base Directory Specification; a relative $XDG_STATE_HOME counts as
 * unset). NULL if neither is set. The caller owns the string. Creates nothing.
 */
char *state_folder_name(const char *const *environment);

/* The folder of a workspace's store, by the workspace's path here. The caller owns the string. */
char *state_folder_store(const char *state_folder, const char *local_root);

enum { STATE_FOLDER_NAME_SIZE = 17 };
/*
 * The name that a workspace's store gives one of its sandboxes (bases/NAME). It is made from the
 * sandbox's root and its instance (may be NULL), because another sandbox may have the same root
 * without ever having had the same content. Returns name.
 */
const char *state_folder_sandbox(char name[STATE_FOLDER_NAME_SIZE], const char *backend,
	const char *profile, const char *runtime_root, const char *instance);

#endif
