/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_COLLECT_RECORD_H
#define BROKER_LEDGER_COLLECT_RECORD_H

#include "base/pool.h"
#include "broker/config/config.h"
#include "broker/ledger/record.h"

struct collect;

/* What is done with the record on the pool; outlives the collect where that is destroyed. */
struct collect_record {
	struct pool_job job;
	struct collect *collect;
	char *state_folder; // owned
	char id[RECORD_ID_SIZE];
	struct record record;
	int folder_fd, lock_fd;
	bool is_ok;
	bool is_held; // by another
	bool is_gone; // its sandbox is
	struct error err;
};

void collect_record_drop(struct pool_job *job);

/* The record as it is now, without its sessions: a copy, owned by the caller. */
struct record collect_record_copy(const struct collect_record *taken);

/* Whether its sandbox is one of this profile's. */
bool collect_record_check(
	const struct collect_record *taken, const struct profile *profile, struct error *err);

/* For the pool. Reads the record and takes its lock; is_held where another has that. */
void collect_record_read(struct pool_job *job);
void collect_record_write(struct pool_job *job); // what cannot be written is logged
void collect_record_remove(struct pool_job *job);

#endif
