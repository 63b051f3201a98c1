/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ROOT_CHECK_H
#define BROKER_RELAY_ROOT_CHECK_H

#include "base/error.h"
#include "base/pool.h"

/*
 * Checks whether directories may be synced at all, before any file is copied; the pool does the
 * work. Runs snapshot_root_check, and refuses a directory that contains the state folder, because
 * the stores would contain themselves, or the broker's own file, because the agent could give
 * itself permissions there.
 */
struct root_check;

/* What must not lie in a directory; each may be NULL. */
struct root_check_own {
	const char *home;
	const char *state_folder;
	const char *const *files; // without links (path_places); NULL-terminated
};

typedef void root_check_done(void *data, const struct error *err);

/*
 * Calls done exactly once, after this returns, with the first directory's error or NULL; then the
 * check is freed. If it is destroyed first, done is never called. Copies the strings. Returns
 * NULL with ERROR_LIMIT or ERROR_SYSTEM.
 */
struct root_check *root_check_create(struct pool *pool, char *const *directories,
	const struct root_check_own *own, root_check_done *done, void *data, struct error *err);

/* No callback follows. NULL is fine. */
void root_check_destroy(struct root_check *check);

#endif
