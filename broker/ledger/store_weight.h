/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_STORE_WEIGHT_H
#define BROKER_LEDGER_STORE_WEIGHT_H

#include <stddef.h>

struct ev_loop;
struct pool;

/*
 * How many bytes of the disk some folders take, with all below them; for stores. Measured on the
 * pool, for `timeout_ms` at most. Loop thread only.
 */
struct store_weight;

/* The same of one folder, by whoever may block, until a time of clock_now_ms; -1 as below. */
long long folder_weight(const char *folder, long long until_ms);

/*
 * The names are copied; names that are there twice are measured once. Raises done once, not before
 * it returns, unless it is destroyed before.
 */
struct store_weight *store_weight_start(struct ev_loop *loop, struct pool *pool,
	const char *const *folders, size_t count, int timeout_ms, void (*done)(void *data),
	void *data);

/* After done: -1 where it could not be measured, or not in time. */
long long store_weight_bytes(const struct store_weight *weight, const char *folder);

void store_weight_destroy(struct store_weight *weight); // NULL is fine

#endif
