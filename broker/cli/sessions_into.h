/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SESSIONS_INTO_H
#define BROKER_CLI_SESSIONS_INTO_H

#include <sys/types.h>

#include "broker/ledger/record.h"
#include "sync/store.h"

/*
 * `sessions collect --into DIR`: what a session left whose workspace is gone. For the collect the
 * workspace is made again in its place, as it was at the last sync, and then it is moved to DIR. So
 * DIR gets what the agent's folder has, and every rule of a last sync holds. Blocks.
 */
struct sessions_into {
	char *place;    // owned; where the workspace was
	char *to;       // owned; DIR, absolute
	size_t present; // of the place: so many bytes of it are a folder that was there
	char *store;    // owned; the folder of its store
	bool is_made;   // the place, as this folder
	dev_t device;
	ino_t inode;
	bool is_restored; // of the place: this was put into it, at least in part
	git_oid restored;
};

/*
 * ERROR_CONFIG where the workspace is there, DIR is no empty folder, or it is on another file
 * system than the place. To be ended, unless this fails.
 */
bool sessions_into_begin(struct sessions_into *into, const char *state_folder,
	const struct record *record, const char *dir, struct error *err) ATTR_NODISCARD;

/*
 * Moves it to DIR. If the collect has failed, what was restored is removed again. What others have
 * written into it meanwhile stays, and a warning says so. Another folder that is in the place
 * by now is neither moved nor changed.
 */
bool sessions_into_end(
	struct sessions_into *into, bool is_collected, struct error *err) ATTR_NODISCARD;

#endif
