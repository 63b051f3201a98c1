/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/words.h"
#include "broker/ledger/keeper_impl.h"
#include "broker/ledger/store_weight.h"
#include "sync/checkpoint.h"
#include "sync/store_lock.h"

/*
 * Removes, once a day per store, what no checkpoint needs any more, after the last sync. The end of
 * the sandbox waits for it, at most PRUNE_TIME_MAX_MS per store, because the pool of a process that
 * is ending begins nothing more. If the process is killed, the store stays sound.
 */
enum { PRUNE_PERIOD_S = 24 * 3600, PRUNE_TIME_MAX_MS = 5000 };

static const char stamp_name[] =
	"pruned"; // a file in the store; its time is that of the last prune

struct pruning {
	struct pool_job job;
	struct keeper *keeper;
	char **store_folders; // owned
	size_t max_bytes;     // store-max-size; 0: no limit
};

static bool is_due(const struct store *store)
{
	struct stat status;
	time_t now = time(NULL);
	return fstatat(store->folder_fd, stamp_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
	       status.st_mtime > now || now - status.st_mtime >= PRUNE_PERIOD_S;
}

/* Noted before the work, so that a store that takes too long is not begun at every end. */
static bool note_time(const struct store *store, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		store->folder_fd, stamp_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return (fd >= 0 && futimens(fd, NULL) == 0) ||
	       error_set_errno(err, errno, "store %s: %s", store->path, stamp_name);
}

/* Whether the store is over its limit. Pruning does not make a mirror smaller. */
static bool is_too_large(const struct store *store, size_t max_bytes)
{
	long long until_ms = clock_now_ms() + PRUNE_TIME_MAX_MS;
	char *mirrors = path_join(store->path, "rsync");
	long long all = max_bytes > 0 ? folder_weight(store->path, until_ms) : 0;
	long long of_mirrors = all > 0 ? folder_weight(mirrors, until_ms) : 0;
	free(mirrors);
	return all - (of_mirrors > 0 ? of_mirrors : 0) > (long long)max_bytes;
}

/* Drops half of the states each time, because their size is known only after they are removed. */
static bool shrink(struct store *store, struct error *err)
{
	struct checkpoint *list;
	struct checkpoint_damage damage;
	struct checkpoint_forgotten forgotten;
	size_t count;
	ATTR_CLEANUP(fd_cleanup) int lock = store_lock_open(store, err);
	if (lock < 0 || !store_lock_try(lock)) {
		return lock >= 0; // whoever is syncing prunes it
	}
	if (!checkpoint_list(store, &list, &count, &damage, err)) {
		return false;
	}
	size_t states = checkpoint_count_states(list, count);
	free(list);
	struct checkpoint_limits limits = {states > 1 ? states / 2 : 1, 0};
	return checkpoint_forget(store, &limits, (long long)time(NULL), &forgotten, &damage, err);
}

static bool prune_open(struct store *store, size_t max_bytes, struct error *err)
{
	struct store_pruned pruned;
	if (!is_due(store)) {
		return true;
	}
	return note_time(store, err) &&
	       (max_bytes == 0 || !is_too_large(store, max_bytes) || shrink(store, err)) &&
	       store_prune(store, STORE_GRACE_SECONDS, PRUNE_TIME_MAX_MS, &pruned, err);
}

static bool prune(const char *store_folder, size_t max_bytes, struct error *err)
{
	struct store store;
	if (!store_open(&store, store_folder, 0, err)) {
		return false;
	}
	bool ok = prune_open(&store, max_bytes, err);
	store_close(&store);
	return ok;
}

static void on_run(struct pool_job *job)
{
	const struct pruning *pruning = CONTAINER_OF(job, struct pruning, job);
	for (size_t i = 0; pruning->store_folders[i]; i++) {
		struct error err;
		if (!prune(pruning->store_folders[i], pruning->max_bytes, &err)) {
			log_failure(LOG_LEVEL_WARNING, &err,
				"removing objects that are no longer needed: %s", err.text);
		}
	}
}

static void drop(struct pool_job *job)
{
	struct pruning *pruning = CONTAINER_OF(job, struct pruning, job);
	words_free(pruning->store_folders);
	free(pruning);
}

static void on_done(struct pool_job *job)
{
	struct keeper *keeper = CONTAINER_OF(job, struct pruning, job)->keeper;
	keeper->pruning = NULL;
	drop(job);
	keeper_pruned(keeper);
}

bool keeper_prune(struct keeper *keeper)
{
	struct error err;
	struct pruning *pruning = mem_alloc_zero(sizeof(*pruning));
	pruning->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_done, .drop = drop};
	pruning->keeper = keeper;
	pruning->max_bytes = keeper->config.settings->store_max_bytes;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (keep->workspace && keep->is_opened) {
			words_append(&pruning->store_folders, keep->store_folder);
		}
	}
	if (!pruning->store_folders || !pool_submit(keeper->config.pool, &pruning->job, &err)) {
		drop(&pruning->job);
		return false;
	}
	keeper->pruning = pruning;
	return true;
}

void keeper_drop_pruning(struct keeper *keeper)
{
	if (keeper->pruning) {
		pool_leave(&keeper->pruning->job);
	}
}
