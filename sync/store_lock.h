/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_LOCK_H
#define SYNC_STORE_LOCK_H

#include "sync/store.h"

/*
 * The lock of a store. Whoever syncs its workspace, or changes the local directory from the store,
 * holds it. It ends with the file descriptor, also after a kill.
 */
int store_lock_open(struct store *store, struct error *err); // not held yet; -1: err says why

/*
 * The same for a store that is not open, by its folder. *out_fd is -1 if the store does not exist
 * or cannot exist; then nobody has its lock.
 */
bool store_lock_find(const char *folder, int *out_fd, struct error *err) ATTR_NODISCARD;

/* Tries to take it; false with errno EWOULDBLOCK if somebody else holds it. */
bool store_lock_try(int fd);

/*
 * Waits for it, blocking, until a deadline of clock_now_ms: ERROR_TIMEOUT. Calls `on_wait` once,
 * before the first wait; it may be NULL.
 */
bool store_lock_wait(
	int fd, long long deadline_ms, void (*on_wait)(void), struct error *err) ATTR_NODISCARD;

#endif
