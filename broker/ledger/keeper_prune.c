/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/words.h"
#include "broker/ledger/keeper_impl.h"

/*
 * What no checkpoint needs any more goes once a day a store, after the last sync. Nobody waits
 * for it but the end of the process, and that PRUNE_TIME_MAX_MS a store at most; killed, it
 * leaves the store as sound as it was.
 */
enum { PRUNE_PERIOD_S = 24 * 3600, PRUNE_TIME_MAX_MS = 5000 };

static const char stamp_name[] = "pruned"; // in the store: its time is that of the last prune

struct pruning {
	struct pool_job job;
	char **store_folders; // owned
};

static bool is_due(const struct store *store)
{
	struct stat status;
	time_t now = time(NULL);
	return fstatat(store->folder_fd, stamp_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
	       status.st_mtime > now || now - status.st_mtime >= PRUNE_PERIOD_S;
}

/* Before it is done, so that what takes too long is not begun at every end. */
static bool note_time(const struct store *store, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(
		store->folder_fd, stamp_name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return (fd >= 0 && futimens(fd, NULL) == 0) ||
	       error_set_errno(err, errno, "store %s: %s", store->path, stamp_name);
}

static bool prune(const char *store_folder, struct error *err)
{
	struct store store;
	struct store_pruned pruned;
	if (!store_open(&store, store_folder, 0, err)) {
		return false;
	}
	bool ok = !is_due(&store) ||
	          (note_time(&store, err) && store_prune(&store, STORE_GRACE_SECONDS,
						     PRUNE_TIME_MAX_MS, &pruned, err));
	store_close(&store);
	return ok;
}

static void on_run(struct pool_job *job)
{
	const struct pruning *pruning = CONTAINER_OF(job, struct pruning, job);
	for (size_t i = 0; pruning->store_folders[i]; i++) {
		struct error err;
		if (!prune(pruning->store_folders[i], &err)) {
			log_warning("removing what is not needed any more: %s", err.text);
		}
	}
}

static void on_done(struct pool_job *job)
{
	struct pruning *pruning = CONTAINER_OF(job, struct pruning, job);
	words_free(pruning->store_folders);
	free(pruning);
}

void keeper_prune(struct keeper *keeper)
{
	struct error err;
	struct pruning *pruning = mem_alloc_zero(sizeof(*pruning));
	pruning->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = on_run, .done = on_done};
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (keep->workspace && keep->is_opened) {
			words_append(&pruning->store_folders, keep->store_folder);
		}
	}
	if (!pruning->store_folders || !pool_submit(keeper->config.pool, &pruning->job, &err)) {
		words_free(pruning->store_folders);
		free(pruning);
	}
}
