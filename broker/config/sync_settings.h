/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_SYNC_SETTINGS_H
#define BROKER_CONFIG_SYNC_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "sync/guard_paths.h"
#include "sync/workspace.h"

enum sync_mode { SYNC_MODE_NONE, SYNC_MODE_SESSION, SYNC_MODE_TURN };
/* In the order of the words of the key "transport". */
enum sync_transport { SYNC_TRANSPORT_AUTO, SYNC_TRANSPORT_GIT, SYNC_TRANSPORT_RSYNC };
/* In the order of the words of the key "persistence". */
enum persistence { PERSISTENCE_TRANSIENT, PERSISTENCE_REUSE, PERSISTENCE_ARCHIVE };

const char *persistence_name(enum persistence persistence);
bool persistence_parse(const char *name, enum persistence *out_persistence);

const char *sync_mode_name(enum sync_mode mode); // "none", …

/* A profile's settings for syncs. */
struct sync_settings {
	enum sync_mode mode;
	enum persistence persistence;
	enum sync_transport transport; // how a copy in the sandbox is synced
	bool keeps_plain; // also keep checkpoints if the agent works in the workspace itself
	char **include, **exclude;       // NULL-terminated pathspecs; may be NULL
	struct guard_paths *guard_paths; // owned by the profile; NULL: none
	struct snapshot_limits limits;
	uint64_t big_file_bytes;
	int timeout_ms;      // for a transfer without progress
	int lock_timeout_ms; // for another broker's sync to end
	int max_checkpoints;
	long long checkpoint_age_ms;        // 0: no limit
	size_t store_max_bytes;             // 0: no limit
	long long copy_max_age_ms;          // of a finished copy; 0: no limit
	transport_create *create_transport; // NULL: `transport` decides; unused without a copy
};

#endif
