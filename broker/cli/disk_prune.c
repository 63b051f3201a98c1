/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/real_path.h"
#include "base/settings.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/cli/disk.h"
#include "broker/cli/stderr_line.h"
#include "broker/ledger/state_folder.h"
#include "broker/ledger/store_weight.h"
#include "sync/checkpoint.h"
#include "sync/conflicts.h"
#include "sync/git/commits.h"
#include "sync/store_end.h"
#include "sync/store_lock.h"

struct pruning {
	const struct sessions_means *means;
	struct holdings holdings; // the present ones
	long long older_s;        // -1: any age
	long long max_bytes;      // 0: no limit
	bool is_dry;
	char **failed; // owned: paths that failed; they are not tried again
	char **gone;   // owned: paths that were removed, or would be
	size_t removed, checkpoints;
	long long bytes;
};

static const struct setting_key older_key = {
	.name = "--older", .type = SETTING_DURATION, .fallback = "30d", .max = 1LL << 42};
static const struct setting_key size_key = {
	.name = "--max-size", .type = SETTING_BYTES, .fallback = "0", .min = 1, .max = 1LL << 50};

static bool read_value(
	const struct setting_key *key, const char *word, long long *out, struct error *err)
{
	struct settings settings;
	if (!setting_check(key, word, err)) {
		return error_prefix(err, "prune: %s", key->name);
	}
	settings_init(&settings);
	settings_add(&settings, key->name, word, "command line");
	*out = settings_number(&settings, key);
	settings_finish(&settings);
	return true;
}

/* With only a size, age does not matter. */
static bool read_limits(struct pruning *pruning, struct error *err)
{
	const struct options *options = pruning->means->options;
	const char *older = options->older      ? options->older
	                    : options->max_size ? NULL
	                                        : older_key.fallback;
	long long older_ms = 0;
	if ((older && !read_value(&older_key, older, &older_ms, err)) ||
		(options->max_size &&
			!read_value(&size_key, options->max_size, &pruning->max_bytes, err))) {
		return false;
	}
	pruning->older_s = older ? older_ms / 1000 : LLONG_MAX;
	pruning->is_dry = options->flags & OPTION_DRY_RUN;
	return true;
}

static bool find(struct pruning *pruning, struct error *err)
{
	holdings_finish(&pruning->holdings);
	return holdings_find(&pruning->holdings, pruning->means->state_folder, true, err);
}

static bool is_old(const struct pruning *pruning, const struct holding *holding)
{
	return holding->used > 0 && (long long)(time(NULL) - holding->used) >= pruning->older_s;
}

static bool is_in(char *const *paths, const struct holding *holding)
{
	return words_contain((const char *const *)paths, holding->path);
}

/* ---- removing one ---- */

static void note_removed(struct pruning *pruning, const struct holding *holding)
{
	char size[DISK_TEXT_SIZE];
	char *name = disk_name(holding);
	printf("%s the %s: %s\n", pruning->is_dry ? "would remove" : "removed", name,
		disk_size_text(size, holding->bytes));
	free(name);
	pruning->removed++;
	words_append(&pruning->gone, holding->path);
	pruning->bytes += holding->bytes > 0 ? holding->bytes : 0;
}

static void note_kept(struct pruning *pruning, const struct holding *holding, const char *why)
{
	char *name = disk_name(holding);
	stderr_note("kept the %s: %s", name, why);
	free(name);
	words_append(&pruning->failed, holding->path);
}

/* Syncs the copy once more, so that changes made after its collection are not lost. */
static bool end_copy(struct pruning *pruning, const struct holding *copy, struct error *err)
{
	if (!sessions_end_sandbox(pruning->means, copy->record, err)) {
		return false;
	}
	char *made = path_join(copy->path, ".made"); // agents may work in this folder
	bool is_there = access(made, F_OK) == 0;
	free(made);
	return !is_there ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "it has changes that are not in the workspace, or somebody works "
		       "in it");
}

static bool is_store_of(
	const struct pruning *pruning, const struct holding *store, const char *workspace)
{
	char *path = state_folder_store(pruning->means->state_folder, workspace);
	bool is_same = strcmp(path, store->path) == 0;
	free(path);
	return is_same;
}

/* Checks again, because somebody may have begun a session meanwhile. */
static bool check_records(
	const struct pruning *pruning, const struct holding *store, struct error *err)
{
	struct holdings now;
	bool ok = holdings_find(&now, pruning->means->state_folder, false, err);
	for (size_t i = 0; ok && i < now.count; i++) {
		const struct holding *other = &now.list[i];
		if (other->kind == HOLDING_RECORD && !other->workspace) {
			ok = error_set(
				err, ERROR_UNAVAILABLE, "session %s cannot be read", other->record);
		} else if (other->kind == HOLDING_RECORD && other->state != HOLDING_FINISHED &&
			   is_store_of(pruning, store, other->workspace)) {
			ok = error_set(err, ERROR_UNAVAILABLE, "session %s has begun to use it",
				other->record);
		}
	}
	holdings_finish(&now);
	return ok;
}

/*
 * A broker that creates a record of this workspace waits for this lock, so the result of the checks
 * stays true.
 */
static bool end_store(struct pruning *pruning, const struct holding *store, struct error *err)
{
	int fd = -1;
	if (!store_lock_find(store->path, &fd, err)) {
		return false;
	}
	bool ok = fd >= 0 && store_lock_try(fd);
	if (!ok) {
		error_set(err, ERROR_UNAVAILABLE, "another acp-broker is using it");
	}
	ok = ok && check_records(pruning, store, err);
	ok = ok && store_remove(store->path, err);
	fd_close(&fd);
	return ok;
}

static bool end_record(struct pruning *pruning, const struct holding *record, struct error *err)
{
	bool is_removed = false;
	ATTR_CLEANUP(fd_cleanup)
	int folder_fd = record_folder_open(pruning->means->state_folder, err);
	return folder_fd >= 0 && sessions_remove(folder_fd, record->record, &is_removed, err) &&
	       (is_removed || error_set(err, ERROR_UNAVAILABLE, "a broker is using it"));
}

static bool end_home(struct pruning *pruning, const struct holding *home, struct error *err)
{
	return holding_home_remove(home->path, err);
}

static bool end_mirror(struct pruning *pruning, const struct holding *mirror, struct error *err)
{
	return error_set(err, ERROR_UNAVAILABLE, "it is removed together with its store");
}

static bool end_one(struct pruning *pruning, const struct holding *holding)
{
	static bool (*const ends[])(struct pruning *, const struct holding *, struct error *) = {
		[HOLDING_COPY] = end_copy,
		[HOLDING_STORE] = end_store,
		[HOLDING_MIRROR] = end_mirror,
		[HOLDING_HOME] = end_home,
		[HOLDING_RECORD] = end_record,
	};
	struct error err;
	if (!pruning->is_dry && !ends[holding->kind](pruning, holding, &err)) {
		note_kept(pruning, holding, err.text);
		return false;
	}
	note_removed(pruning, holding);
	return true;
}

/* Removes the holdings of one kind that are old and finished. Says why the others stay. */
static void end_old(struct pruning *pruning, enum holding_kind kind)
{
	for (size_t i = 0; i < pruning->holdings.count; i++) {
		const struct holding *holding = &pruning->holdings.list[i];
		bool is_unreadable = holding->kind == HOLDING_RECORD && !holding->workspace;
		if (holding->kind != kind || !(is_unreadable || is_old(pruning, holding)) ||
			is_in(pruning->failed, holding)) {
			continue;
		}
		if (holding->state == HOLDING_FINISHED) {
			end_one(pruning, holding);
		} else if (kind != HOLDING_RECORD || is_unreadable) {
			char why[HOLDING_WHY_MAX + 32];
			text_format(why, sizeof(why), "%s%s%s", holding_state_name(holding->state),
				*holding->why ? ", " : "", holding->why);
			note_kept(pruning, holding, why);
		}
	}
}

/* A copy is found by its record: the last record of a copy stays as long as the copy. */
static void keep_records_of_copies(struct pruning *pruning)
{
	struct holdings *holdings = &pruning->holdings;
	for (size_t i = 0; i < holdings->count; i++) {
		struct holding *record = &holdings->list[i];
		for (size_t j = 0; record->kind == HOLDING_RECORD && j < holdings->count; j++) {
			const struct holding *copy = &holdings->list[j];
			bool stays = copy->kind == HOLDING_COPY && !is_in(pruning->gone, copy);
			if (stays && strcmp(copy->record, record->record) == 0) {
				record->state = HOLDING_KEPT;
			}
		}
	}
}

/* ---- checkpoints ---- */

struct forgetting {
	struct checkpoint_limits limits;
	bool is_dry;
	size_t count; // of forgotten checkpoints
};

static bool forget_open(struct forgetting *forgetting, struct store *store, struct error *err)
{
	struct checkpoint_damage damage;
	struct checkpoint_forgotten forgotten = {0};
	struct store_pruned pruned;
	long long now = (long long)time(NULL);
	if (forgetting->is_dry) {
		struct checkpoint *list;
		size_t count;
		if (!checkpoint_list(store, &list, &count, &damage, err)) {
			return false;
		}
		long long age = forgetting->limits.age_max_seconds;
		size_t old = age > 0 ? checkpoint_horizon(list, count, age, now).old : count;
		forgetting->count = count == 0 ? 0 : old < count ? old : count - 1;
		free(list);
		return true;
	}
	bool ok = checkpoint_forget(store, &forgetting->limits, now, &forgotten, &damage, err) &&
	          agent_commits_forget(store, forgotten.before, err) &&
	          conflicts_sweep(store, (time_t)forgotten.before, err) &&
	          store_prune(store, STORE_GRACE_SECONDS, 0, &pruned, err);
	forgetting->count = forgotten.count;
	return ok;
}

/* A store that a broker is syncing with prunes itself. */
static bool forget(struct forgetting *forgetting, const struct holding *holding, struct error *err)
{
	struct store store;
	int fd = -1;
	bool ok = store_lock_find(holding->path, &fd, err);
	if (ok && fd >= 0 && store_lock_try(fd)) {
		ok = store_open(&store, holding->path, 0, err);
		if (ok) {
			ok = forget_open(forgetting, &store, err);
			store_close(&store);
		}
	}
	fd_close(&fd);
	return ok;
}

static void forget_of(
	struct pruning *pruning, struct holding *holding, const struct checkpoint_limits *limits)
{
	struct error err;
	struct forgetting forgetting = {*limits, pruning->is_dry, 0};
	char size[DISK_TEXT_SIZE];
	if (!forget(&forgetting, holding, &err)) {
		note_kept(pruning, holding, err.text);
		return;
	}
	if (forgetting.count == 0) {
		return;
	}
	long long now = pruning->is_dry ? holding->bytes : folder_weight(holding->path, LLONG_MAX);
	long long freed = now < holding->bytes ? holding->bytes - now : 0;
	char *name = disk_name(holding);
	printf("%s %zu checkpoint%s of the %s%s%s\n", pruning->is_dry ? "would forget" : "forgot",
		forgetting.count, forgetting.count == 1 ? "" : "s", name,
		pruning->is_dry ? "" : ": ", pruning->is_dry ? "" : disk_size_text(size, freed));
	free(name);
	pruning->checkpoints += forgetting.count;
	pruning->bytes += freed;
}

static void forget_all(struct pruning *pruning, const struct checkpoint_limits *limits)
{
	for (size_t i = 0; i < pruning->holdings.count; i++) {
		struct holding *holding = &pruning->holdings.list[i];
		if (holding->kind == HOLDING_STORE && !is_in(pruning->failed, holding)) {
			forget_of(pruning, holding, limits);
		}
	}
}

/* ---- by size ---- */

static long long total(const struct pruning *pruning)
{
	long long bytes = 0;
	for (size_t i = 0; i < pruning->holdings.count; i++) {
		const struct holding *holding = &pruning->holdings.list[i];
		bytes += holding->bytes > 0 && holding->kind != HOLDING_RECORD ? holding->bytes : 0;
	}
	return bytes;
}

static const struct holding *oldest_finished(const struct pruning *pruning)
{
	const struct holding *oldest = NULL;
	for (size_t i = 0; i < pruning->holdings.count; i++) {
		const struct holding *holding = &pruning->holdings.list[i];
		bool may_go = holding->state == HOLDING_FINISHED &&
		              (holding->kind == HOLDING_COPY || holding->kind == HOLDING_STORE ||
				      holding->kind == HOLDING_HOME) &&
		              !is_in(pruning->failed, holding);
		if (may_go && (!oldest || holding->used < oldest->used)) {
			oldest = holding;
		}
	}
	return oldest;
}

/* The one unused for the longest goes first. A store is finished once its copy is gone. */
static bool shrink(struct pruning *pruning, struct error *err)
{
	char size[DISK_TEXT_SIZE], limit[DISK_TEXT_SIZE];
	const struct holding *oldest;
	long long bytes = total(pruning);
	while (bytes > pruning->max_bytes && (oldest = oldest_finished(pruning))) {
		char *path = mem_strdup(oldest->path);
		long long its = oldest->bytes;
		bool ended = end_one(pruning, oldest);
		words_append(&pruning->failed, path); // removed or failed: not tried again
		free(path);
		if (!pruning->is_dry && !find(pruning, err)) {
			return false;
		}
		bytes = !pruning->is_dry ? total(pruning) : ended ? bytes - its : bytes;
	}
	if (bytes > pruning->max_bytes) {
		forget_all(pruning, &(struct checkpoint_limits){1, 0});
		if (!find(pruning, err)) {
			return false;
		}
		bytes = pruning->is_dry ? bytes : total(pruning);
	}
	if (bytes > pruning->max_bytes) {
		stderr_note("%s %s left, more than %s: what is in use, not collected or "
			    "needed stays (acp-broker du says which)",
			disk_size_text(size, bytes), pruning->is_dry ? "would be" : "are",
			disk_size_text(limit, pruning->max_bytes));
	}
	return true;
}

/* ---- the whole command ---- */

static bool prune_old(struct pruning *pruning, struct error *err)
{
	end_old(pruning, HOLDING_COPY);
	if (!find(pruning, err)) {
		return false;
	}
	end_old(pruning, HOLDING_STORE);
	if (!find(pruning, err)) {
		return false;
	}
	struct checkpoint_limits of_age = {SIZE_MAX, pruning->older_s};
	struct checkpoint_limits newest = {1, 0};
	forget_all(pruning, pruning->older_s > 0 ? &of_age : &newest);
	keep_records_of_copies(pruning);
	end_old(pruning, HOLDING_RECORD);
	if (!find(pruning, err)) {
		return false;
	}
	end_old(pruning, HOLDING_HOME);
	return find(pruning, err);
}

static bool prune(struct pruning *pruning, struct error *err)
{
	if (!read_limits(pruning, err)) {
		return false;
	}
	char *stores = path_join(pruning->means->state_folder, "stores");
	if (!pruning->is_dry) {
		store_sweep_removed(stores);
		holding_homes_sweep(pruning->means->state_folder);
	}
	free(stores);
	return find(pruning, err) && (pruning->older_s == LLONG_MAX || prune_old(pruning, err)) &&
	       (pruning->max_bytes == 0 || shrink(pruning, err));
}

bool disk_prune(const struct sessions_means *means, struct error *err)
{
	char size[DISK_TEXT_SIZE];
	struct pruning pruning = {.means = means};
	bool ok = prune(&pruning, err);
	if (ok) {
		printf("%zu %s, %s\n", pruning.removed,
			pruning.is_dry ? "would be removed" : "removed",
			disk_size_text(size, pruning.bytes));
	}
	words_free(pruning.failed);
	words_free(pruning.gone);
	holdings_finish(&pruning.holdings);
	return ok;
}
