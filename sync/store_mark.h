/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_MARK_H
#define SYNC_STORE_MARK_H

#include "sync/id_set.h"
#include "sync/store.h"

/*
 * Adds everything that a ref or a stat cache leads to: commits, trees, blobs, and the
 * contents of big files. ERROR_SYSTEM where something on the way cannot be read: then
 * nothing is known of what is behind it, and nothing may be removed; the text says which ref or
 * cache it is, and how one does without it. ERROR_TIMEOUT at the deadline (clock_now_ms; 0: none).
 */
bool store_mark(struct store *store, struct id_set *set, long long deadline_ms,
	struct error *err) ATTR_NODISCARD;

#endif
