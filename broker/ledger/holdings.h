/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_HOLDINGS_H
#define BROKER_LEDGER_HOLDINGS_H

#include <limits.h>
#include <time.h>

#include "broker/ledger/record.h"

/*
 * What the broker keeps in its state folder: records, stores with their mirrors, and copies; of
 * which workspace each is, how big, how old, and whether it may go. All of it blocks.
 */
enum holding_kind { HOLDING_COPY, HOLDING_STORE, HOLDING_MIRROR, HOLDING_RECORD };

enum holding_state {
	HOLDING_USED,        // a broker that runs has it
	HOLDING_UNCOLLECTED, // it has, or leads to, what is not in the workspace
	HOLDING_KEPT,        // something else needs it: see `why`
	HOLDING_FINISHED,
};

enum { HOLDING_WHY_MAX = 160 };

struct holding {
	enum holding_kind kind;
	enum holding_state state;
	char why[HOLDING_WHY_MAX];   // it is not finished; "" where the state says all
	char *path;                  // owned; of a copy the folder that the agent works in
	char *workspace;             // owned; NULL: not known
	bool is_gone;                // there is no such directory
	long long bytes;             // of the disk, of a store without its mirrors; -1: not known
	time_t used;                 // the last time; 0: not known
	char record[RECORD_ID_SIZE]; // a record's own, a copy's last one; "": none
	char *profile;               // owned; the record's; NULL: none
};

struct holdings {
	struct holding *list; // owned; by kind, the one that was used last comes first
	size_t count;
};

const char *holding_kind_name(enum holding_kind kind);
const char *holding_state_name(enum holding_state state);

/* A state folder that does not exist holds nothing. Measuring takes a look at every file. */
bool holdings_find(struct holdings *out, const char *state_folder, bool measures,
	struct error *err) ATTR_NODISCARD;
void holdings_finish(struct holdings *holdings);

#endif
