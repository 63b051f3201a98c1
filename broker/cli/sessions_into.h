/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SESSIONS_INTO_H
#define BROKER_CLI_SESSIONS_INTO_H

#include <sys/types.h>

#include "broker/ledger/record.h"
#include "sync/store.h"

/*
 * `sessions collect --into DIR`: for a session whose workspace is gone. It restores the workspace
 * in its old place as it was at the last sync, collects into it, and then moves it to DIR. So DIR
 * gets the content of the agent's folder, and all rules of a last sync apply. Blocks.
 */
struct sessions_into {
	char *place;    // owned; the path where the workspace was
	char *to;       // owned; DIR, absolute
	size_t present; // the first bytes of `place` that name an existing folder
	char *store;    // owned; the folder of the workspace's store
	bool is_made;   // the place was created, as this folder
	dev_t device;
	ino_t inode;
	bool is_restored; // this tree was written into the place, at least in part
	git_oid restored;
};

/*
 * ERROR_CONFIG if the workspace exists, if DIR is not an empty folder, or if it is on another file
 * system than the place. If it succeeds, the caller must call sessions_into_end.
 */
bool sessions_into_begin(struct sessions_into *into, const char *state_folder,
	const struct record *record, const char *dir, struct error *err) ATTR_NODISCARD;

/*
 * Moves the place to DIR. If the collect has failed, removes the restored files instead; files that
 * other programs have written there meanwhile stay, and a warning says so. If another folder has
 * taken the place, it is neither moved nor changed.
 */
bool sessions_into_end(
	struct sessions_into *into, bool is_collected, struct error *err) ATTR_NODISCARD;

#endif
