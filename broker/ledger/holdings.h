/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_HOLDINGS_H
#define BROKER_LEDGER_HOLDINGS_H

#include <limits.h>
#include <time.h>

#include "broker/ledger/record.h"

/*
 * What the broker keeps in its state folder: records, stores with their mirrors, and copies. For
 * each: its workspace, its size, its age, and whether it may be deleted. All functions block.
 */
enum holding_kind { HOLDING_COPY, HOLDING_STORE, HOLDING_MIRROR, HOLDING_RECORD };

enum holding_state {
	HOLDING_USED,        // a running broker uses it
	HOLDING_UNCOLLECTED, // it has, or leads to, changes that are not in the workspace
	HOLDING_KEPT,        // something else needs it; `why` names that
	HOLDING_FINISHED,
};

enum { HOLDING_WHY_MAX = 160 };

struct holding {
	enum holding_kind kind;
	enum holding_state state;
	char why[HOLDING_WHY_MAX];   // why it is not finished; "" if the state says enough
	char *path;                  // owned; for a copy: the folder that the agent works in
	char *workspace;             // owned; NULL: unknown, as of a record that cannot be read
	bool is_gone;                // the workspace's directory no longer exists
	long long bytes;             // on the disk; a store's without its mirrors; -1: unknown
	time_t used;                 // last use; 0: unknown
	char record[RECORD_ID_SIZE]; // a record's own id, a copy's last record; "": none
	char *profile;               // owned; the record's profile; NULL: none
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

#endif
