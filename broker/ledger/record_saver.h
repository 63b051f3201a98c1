/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_SAVER_H
#define BROKER_LEDGER_RECORD_SAVER_H

#include <ev.h>

#include "base/pool.h"
#include "broker/ledger/record.h"

/*
 * Saves records (broker/ledger/record.h) on the worker pool, one after the other. Holds the lock of
 * each record from its first save on. Loop thread only.
 */
struct record_saver;

typedef void record_saved(void *data, const struct error *err);

/* Borrows loop and pool; copies the folder's name. */
struct record_saver *record_saver_create(
	struct ev_loop *loop, struct pool *pool, const char *state_folder);

/*
 * Drops queued saves without calling their done. A save that is running completes. Releases the
 * locks. NULL is fine.
 */
void record_saver_destroy(struct record_saver *saver);

/*
 * Saves the record as it is now. Calls done exactly once, after this returns; never if the saver is
 * destroyed first.
 */
void record_saver_save(
	struct record_saver *saver, const struct record *record, record_saved *done, void *data);

/* Calls done, as above, once everything queued is saved. */
void record_saver_flush(struct record_saver *saver, record_saved *done, void *data);

/* The same; also writes into the lock files that their owner is about to end. */
void record_saver_note_end(struct record_saver *saver, record_saved *done, void *data);

/*
 * Like record_saver_save, for a new record: ERROR_LIMIT if running brokers already work with `max`
 * records of its profile (broker/ledger/record_limit.h); 0: any number.
 */
void record_saver_add(struct record_saver *saver, const struct record *record, size_t max,
	record_saved *done, void *data);

/*
 * Takes over a lock that is already held (record_lock), for a record that the saver will save. Call
 * it before the first save.
 */
void record_saver_adopt(struct record_saver *saver, const char *id, int lock_fd);

#endif
