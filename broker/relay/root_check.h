/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ROOT_CHECK_H
#define BROKER_RELAY_ROOT_CHECK_H

#include "base/error.h"
#include "base/pool.h"

/*
 * Whether directories may be synced at all, asked on the pool before anything of them is copied:
 * snapshot_root_check, and none may hold the state folder, whose stores would be kept in
 * themselves.
 */
struct root_check;

typedef void root_check_done(void *data, const struct error *err);

/*
 * Raises done exactly once and not before it returns, with the first directory's error,
 * unless it is destroyed before; it is gone then. The texts are copied; home and state_folder may
 * be NULL.
 * ERROR_LIMIT, ERROR_SYSTEM: NULL.
 */
struct root_check *root_check_create(struct pool *pool, char *const *directories, const char *home,
	const char *state_folder, root_check_done *done, void *data, struct error *err);

/* Raises nothing more. NULL is fine. */
void root_check_destroy(struct root_check *check);

#endif
