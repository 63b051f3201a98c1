/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_COLLECT_RECORD_H
#define BROKER_LEDGER_COLLECT_RECORD_H

#include "base/pool.h"
#include "broker/config/config.h"
#include "broker/ledger/record.h"

struct collect;

/* A job on the pool that works on the record. It outlives a collect that is destroyed. */
struct collect_record {
	struct pool_job job;
	struct collect *collect;
	char *state_folder; // owned
	char id[RECORD_ID_SIZE];
	struct record record;
	int folder_fd, lock_fd;
	bool is_ok;
	bool is_held; // by another broker
	bool is_gone; // its sandbox no longer exists
	struct error err;
};

void collect_record_drop(struct pool_job *job);

/* A copy of the record as it is now, without its sessions; the caller owns it. */
struct record collect_record_copy(const struct collect_record *taken);

/* Whether its sandbox belongs to this profile. */
bool collect_record_check(
	const struct collect_record *taken, const struct profile *profile, struct error *err);

/* For the pool. Reads the record and takes its lock; is_held if another broker has the lock. */
void collect_record_read(struct pool_job *job);
void collect_record_write(struct pool_job *job); // a failed write is logged
void collect_record_remove(struct pool_job *job);

#endif
