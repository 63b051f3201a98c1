/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_MARK_H
#define SYNC_STORE_MARK_H

#include "sync/id_set.h"
#include "sync/store.h"

/*
 * Adds everything that a ref or a stat cache leads to: commits, trees, blobs, and the contents of
 * big files. ERROR_SYSTEM if an object on the way cannot be read: then we do not know which other
 * objects are in use, and must remove none. The text names the ref or cache, and says how to do
 * without it. ERROR_TIMEOUT at the deadline (clock_now_ms; 0: none).
 */
bool store_mark(struct store *store, struct id_set *set, long long deadline_ms,
	struct error *err) ATTR_NODISCARD;

#endif
