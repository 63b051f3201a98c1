/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_LOCK_H
#define SYNC_STORE_LOCK_H

#include "sync/store.h"

/*
 * The lock of a store: whoever syncs its workspace, or changes the local directory to
 * what the store holds, has it. It ends with the descriptor, so also with a kill.
 */
int store_lock_open(struct store *store, struct error *err); // not yet held; -1: err says why

/*
 * The same of a store that is not opened, by its folder: *out_fd is -1 where there is no such
 * store, or can be none, and so nobody who has its lock.
 */
bool store_lock_find(const char *folder, int *out_fd, struct error *err) ATTR_NODISCARD;

/* Whether it is held now; false with errno EWOULDBLOCK where somebody else holds it. */
bool store_lock_try(int fd);

/*
 * Waits for it, blocking, up to a deadline of clock_now_ms: ERROR_TIMEOUT. `on_wait` is
 * called once before the first wait; it may be NULL.
 */
bool store_lock_wait(
	int fd, long long deadline_ms, void (*on_wait)(void), struct error *err) ATTR_NODISCARD;

#endif
