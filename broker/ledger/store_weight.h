/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STORE_WEIGHT_H
#define BROKER_LEDGER_STORE_WEIGHT_H

#include <stddef.h>
#include <time.h>

struct ev_loop;
struct pool;

/*
 * Measures how many bytes on disk some folders take, with everything below them. Used for stores.
 * Runs on the pool, for at most `timeout_ms`. Loop thread only.
 */
struct store_weight;

/*
 * The same for one folder and for callers that may block. Stops at this time of clock_now_ms; -1 as
 * below.
 */
long long folder_weight(const char *folder, long long until_ms);

/* The time of the last change of a file or folder in it; 0: unknown. Blocks. */
time_t folder_changed(const char *folder);

/*
 * Copies the names (NULL-terminated); a name given twice is measured once. Calls done once, after
 * this returns; never if it is destroyed first.
 */
struct store_weight *store_weight_start(struct ev_loop *loop, struct pool *pool,
	const char *const *folders, int timeout_ms, void (*done)(void *data), void *data);

/* After done. -1 if the folder could not be measured, or not in time. */
long long store_weight_bytes(const struct store_weight *weight, const char *folder);

void store_weight_destroy(struct store_weight *weight); // NULL is fine

#endif
