/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_HOLDINGS_H
#define BROKER_LEDGER_HOLDINGS_H

#include <limits.h>
#include <time.h>

#include "broker/ledger/record.h"

/*
 * The things that brokers keep in the state folder: records, stores with their mirrors, copies, and
 * the homes of confined agents (their sessions). Tells of each its workspace, its size, its age,
 * and whether it may be deleted. All functions block.
 */
enum holding_kind {
	HOLDING_COPY,
	HOLDING_STORE,
	HOLDING_MIRROR,
	HOLDING_HOME, // one per profile, as root one per user; has no workspace
	HOLDING_RECORD
};

enum holding_state {
	HOLDING_USED,        // a running broker uses it
	HOLDING_UNCOLLECTED, // it has changes that are not in the workspace, or leads to them
	HOLDING_KEPT,        // something else needs it; `why` names that
	HOLDING_FINISHED,
};

enum { HOLDING_WHY_MAX = 160 };

struct holding {
	enum holding_kind kind;
	enum holding_state state;
	char why[HOLDING_WHY_MAX]; // why it is not finished; "" if the state explains it
	char *path;                // owned; for a copy: the folder that the agent works in
	char *workspace; // owned; NULL: none, or unknown because the record cannot be read
	bool is_gone;    // the workspace's directory no longer exists
	long long bytes; // on disk, for a store without its mirrors; -1: unknown
	time_t used;     // last use; 0: unknown
	char record[RECORD_ID_SIZE]; // a record's own id, a copy's last record; "": none
	char *profile;               // owned; its profile according to a record; NULL: unknown
};

struct holdings {
	struct holding *list; // owned; sorted by kind, then the most recently used first
	size_t count;
};

const char *holding_kind_name(enum holding_kind kind);
const char *holding_state_name(enum holding_state state);

/* A missing state folder holds nothing. Measuring looks at every file. */
bool holdings_find(struct holdings *out, const char *state_folder, bool measures,
	struct error *err) ATTR_NODISCARD;
void holdings_finish(struct holdings *holdings);

/* Removes a HOLDING_HOME, unless a cell uses it (ERROR_UNAVAILABLE). */
bool holding_home_remove(const char *path, struct error *err) ATTR_NODISCARD;

/* Finishes the removal of homes whose removal was interrupted. */
void holding_homes_sweep(const char *state_folder);

#endif
