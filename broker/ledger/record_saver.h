/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_RECORD_SAVER_H
#define BROKER_LEDGER_RECORD_SAVER_H

#include <ev.h>

#include "base/pool.h"
#include "broker/ledger/record.h"

/*
 * Saves records (broker/ledger/record.h) on the worker pool, one after the other, and
 * holds the lock of each from its first save on. Loop thread only.
 */
struct record_saver;

typedef void record_saved(void *data, const struct error *err);

/* Loop and pool are borrowed; the folder's name is copied. */
struct record_saver *record_saver_create(
	struct ev_loop *loop, struct pool *pool, const char *state_folder);

/*
 * What is queued is dropped, unheard; what is being written is written. The locks
 * are let go. NULL is fine.
 */
void record_saver_destroy(struct record_saver *saver);

/*
 * Saves the record as it is now. done is raised exactly once and not before this
 * returns, unless the saver is destroyed before.
 */
void record_saver_save(
	struct record_saver *saver, const struct record *record, record_saved *done, void *data);

/* Raises done, as above, once all that is queued was saved. */
void record_saver_flush(struct record_saver *saver, record_saved *done, void *data);

/* The same; and says in the files of the locks that who has them is about to end. */
void record_saver_note_end(struct record_saver *saver, record_saved *done, void *data);

/*
 * The same of a record that is new: ERROR_LIMIT where brokers that live work with `max` records
 * of its profile already (broker/ledger/record_limit.h); 0: there may be any number.
 */
void record_saver_add(struct record_saver *saver, const struct record *record, size_t max,
	record_saved *done, void *data);

/*
 * Takes over a lock that is held already (record_lock), of a record that this is to save. Before
 * the first save.
 */
void record_saver_adopt(struct record_saver *saver, const char *id, int lock_fd);

#endif
