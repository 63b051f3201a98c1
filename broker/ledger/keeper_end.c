/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/point.h"
#include "base/soon.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/ledger/keeper_impl.h"
#include "sync/round.h"
#include "sync/store_lock.h"

/*
 * Ends a sandbox that will not be used further. A sandbox that rests loses nothing, so only its
 * provider checks whether somebody uses it. For a sandbox that is destroyed: a broker that syncs a
 * workspace holds the lock of its store. This code takes the locks of all its stores, so nobody
 * begins to work in the sandbox during the check and the destruction.
 */

enum { ENDING_AGAIN_MS = 50 }; // between two attempts

/* One root of the sandbox. */
struct ending_root {
	char id[RECORD_ID_SIZE]; // of our own record
	char *store_folder;      // owned
	char *local_root;        // owned
	char *runtime_root;      // owned
	char name[SYNC_NAME_MAX / 2];
	bool is_collected;             // by this keeper: the receipt covers everything in it
	struct record_receipt receipt; // our own record's
	int lock_fd;
};

struct ending {
	struct pool_job job;
	struct keeper *keeper;
	struct ev_loop *loop;
	char *state_folder, *profile, *backend; // owned
	char *reference, *instance;             // owned; the sandbox's, or NULL
	struct ending_root *roots;              // owned
	size_t count;
	enum sandbox_fate fate;
	bool is_discarded; // nothing was collected
	bool is_asked;     // the sandbox was told to end, and has not answered
	struct soon cut;   // stops waiting for its answer
	ev_timer again;    // the next attempt, while another broker uses a store
	double began;      // time of the first attempt, from ev_now
	bool is_busy;      // a store was locked
	bool is_ok;
	char why[128]; // why the sandbox stays; "": it does not
	struct error err;
};

static void ending_drop(struct pool_job *job)
{
	struct ending *ending = CONTAINER_OF(job, struct ending, job);
	soon_stop(&ending->cut);
	ev_timer_stop(ending->loop, &ending->again);
	for (size_t i = 0; i < ending->count; i++) {
		free(ending->roots[i].store_folder);
		free(ending->roots[i].local_root);
		free(ending->roots[i].runtime_root);
		fd_close(&ending->roots[i].lock_fd);
	}
	free(ending->roots);
	free(ending->state_folder);
	free(ending->profile);
	free(ending->backend);
	free(ending->reference);
	free(ending->instance);
	free(ending);
}

/* ---- on the pool ---- */

/* Without a store nothing was ever synced, and nobody is syncing. */
static bool lock_store(struct ending *ending, struct ending_root *root)
{
	if (!store_lock_find(root->store_folder, &root->lock_fd, &ending->err)) {
		return false;
	}
	ending->is_busy = root->lock_fd >= 0 && !store_lock_try(root->lock_fd);
	return true;
}

static bool is_ours(const struct ending *ending, const char *id)
{
	for (size_t i = 0; i < ending->count; i++) {
		if (strcmp(ending->roots[i].id, id) == 0) {
			return true;
		}
	}
	return false;
}

/* The root in which the record's session works, or worked without being collected; or NULL. */
static const struct ending_root *find_root(const struct ending *ending, const struct record *record)
{
	/* With a receipt, the only thing left to do is to end the sandbox. */
	if (record->state == RECORD_STOPPED || *record->receipt.runtime_tree ||
		strcmp(record->profile, ending->profile) != 0 ||
		strcmp(record->backend, ending->backend) != 0 ||
		!record_is_of(record, ending->reference, ending->instance)) {
		return NULL;
	}
	for (size_t i = 0; i < ending->count; i++) {
		const struct ending_root *root = &ending->roots[i];
		if (record->runtime_root ? strcmp(root->runtime_root, record->runtime_root) == 0
					 : strcmp(root->local_root, record->local_root) == 0) {
			return root;
		}
	}
	return NULL;
}

struct looking {
	struct ending *ending;
	int folder_fd;
	bool settles; // records that no broker holds
};

/* A dead broker worked in it. Its changes were collected with the rest, or the sandbox stays. */
static void settle(
	const struct looking *looking, struct record *record, const struct ending_root *root)
{
	struct ending *ending = looking->ending;
	if (!root->is_collected) {
		text_format(ending->why, sizeof(ending->why), "session %s left files in it",
			record->id);
		return;
	}
	record->state = RECORD_COLLECTING;
	record->receipt = root->receipt;
	free(record->error);
	record->error = NULL;
	if (!record_put(looking->folder_fd, record, &ending->err)) {
		text_format(ending->why, sizeof(ending->why),
			"the record of session %s cannot be written", record->id);
	}
}

/* An unreadable record may belong to a session that works in it. */
static void look_at(void *data, const char *id)
{
	struct looking *looking = data;
	struct ending *ending = looking->ending;
	struct record record = {0};
	struct error err;
	if (ending->why[0] || is_ours(ending, id)) {
		return;
	}
	bool is_read = record_load(looking->folder_fd, id, &record, &err);
	const struct ending_root *root = is_read ? find_root(ending, &record) : NULL;
	if (root || (!is_read && err.code != ERROR_NOT_FOUND)) {
		int lock_fd = record_lock(looking->folder_fd, id, &err);
		if (lock_fd < 0) {
			text_format(ending->why, sizeof(ending->why),
				"another broker works in it (%s)", id);
		} else if (root && looking->settles) {
			settle(looking, &record, root);
		}
		fd_close(&lock_fd);
	}
	record_finish(&record);
}

/*
 * If nobody uses it, the records of dead brokers are settled along with ours. While a store is
 * busy, that is not known yet.
 */
static bool look_for_others(struct ending *ending)
{
	struct looking looking = {.ending = ending,
		.folder_fd = record_folder_open(ending->state_folder, &ending->err)};
	bool ok = looking.folder_fd >= 0 &&
	          record_visit(looking.folder_fd, look_at, &looking, &ending->err);
	looking.settles = !ending->is_discarded && !ending->is_busy;
	ok = ok &&
	     (!looking.settles || record_visit(looking.folder_fd, look_at, &looking, &ending->err));
	fd_close(&looking.folder_fd);
	return ok;
}

/*
 * Removes the bases before the sandbox. A sandbox without a base is synced in full; a base without
 * its sandbox would be wrong.
 */
static bool forget_bases(struct ending *ending)
{
	for (size_t i = 0; i < ending->count; i++) {
		struct store store;
		if (ending->roots[i].lock_fd < 0) {
			continue;
		}
		if (!store_open(&store, ending->roots[i].store_folder, 0, &ending->err)) {
			return false;
		}
		bool ok = round_forget_base(&store, ending->roots[i].name, &ending->err);
		store_close(&store);
		if (!ok) {
			return false;
		}
	}
	return true;
}

static void on_run(struct pool_job *job)
{
	struct ending *ending = CONTAINER_OF(job, struct ending, job);
	ending->is_ok = true;
	for (size_t i = 0; ending->is_ok && !ending->is_busy && i < ending->count; i++) {
		ending->is_ok = lock_store(ending, &ending->roots[i]);
	}
	ending->is_ok = ending->is_ok && look_for_others(ending);
	if (ending->is_ok && !ending->why[0] && !ending->is_busy) {
		ending->is_ok = forget_bases(ending);
	}
}

/* ---- on the loop ---- */

static void ending_end(struct ending *ending, const struct error *err)
{
	struct keeper *keeper = ending->keeper;
	struct error copy;
	if (err) {
		copy = *err;
		error_prefix(&copy, "%s the sandbox",
			ending->fate == FATE_RESTS ? "stopping" : "ending");
	}
	keeper->ending = NULL;
	ending_drop(&ending->job);
	keeper_end_order(keeper, err ? &copy : NULL);
}

static void stop_next(struct ending *ending, const struct error *err);

static void on_stopped(void *data, const struct error *err)
{
	struct keeper *keeper = data;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (!err && keep->record.state == RECORD_STOPPED) {
			keep_tell_state(keep);
		}
	}
	stop_next(keeper->ending, err);
}

/*
 * The sandbox has ended, or stays for others: sets the state of collected roots to "stopped", one
 * after the other.
 */
static void stop_next(struct ending *ending, const struct error *err)
{
	struct keeper *keeper = ending->keeper;
	char now[TIMESTAMP_SIZE];
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		struct record *record = &keep->record;
		if (!err && !ending->is_discarded && record->state == RECORD_COLLECTING) {
			record->state = RECORD_STOPPED;
			text_whole(
				record->updated, sizeof(record->updated), "%s", timestamp_now(now));
			record_saver_save(keeper->saver, record, on_stopped, keeper);
			return;
		}
	}
	ending_end(ending, err);
}

/*
 * Not a part of the ending, because the answer may come after the ending was cut short. A later
 * ending of the same sandbox is cut short as soon as the sandbox was told, so that it does not wait
 * for this answer.
 */
static void on_destroyed(void *data, const struct error *err)
{
	struct keeper *keeper = data;
	if (!keeper->ending || !keeper->ending->is_asked) {
		return;
	}
	keeper->ending->is_asked = false;
	soon_stop(&keeper->ending->cut);
	point("keeper.ended");
	stop_next(keeper->ending, err);
}

static void on_cut(struct soon *soon)
{
	struct ending *ending = CONTAINER_OF(soon, struct ending, cut);
	struct error err;
	error_set_reason(&err, ERROR_UNAVAILABLE, "SHUTTING_DOWN",
		"%s may still run: a second signal has cut this short",
		ending->reference ? ending->reference : "it");
	ending_end(ending, &err);
}

void keeper_hurry_ending(struct keeper *keeper)
{
	keeper->is_hurried = true;
	if (keeper->ending && keeper->ending->is_asked) {
		soon_start(&keeper->ending->cut);
	}
}

/* The sandbox will be told now. Its answer is awaited unless the end is already urgent. */
static void note_asked(struct ending *ending)
{
	ending->is_asked = true;
	if (ending->keeper->is_hurried) {
		soon_start(&ending->cut);
	}
}

/*
 * The receipts of its roots; NULL if one has none. Without roots, or if the roots are the
 * workspaces themselves, there was nothing to collect.
 */
static const char *receipt_of(const struct keeper *keeper)
{
	const char *receipt = "nothing was in it";
	if (!sandbox_capabilities(keeper->config.sandbox)->isolated) {
		return receipt;
	}
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		receipt = keep->record.receipt.runtime_tree;
		if (!*receipt) {
			return NULL;
		}
	}
	return receipt;
}

static void on_again(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct ending *ending = CONTAINER_OF(timer, struct ending, again);
	ending->is_busy = false;
	for (size_t i = 0; i < ending->count; i++) {
		fd_close(&ending->roots[i].lock_fd);
	}
	struct error err;
	if (!pool_submit(ending->keeper->config.pool, &ending->job, &err)) {
		ending_end(ending, &err);
	}
}

/*
 * A sync of the workspace is under way, in this sandbox or in another one. Once it has ended, the
 * records say which.
 */
static bool tries_again(struct ending *ending)
{
	const struct keeper_config *config = &ending->keeper->config;
	double passed_ms = (ev_now(ending->loop) - ending->began) * 1000;
	if (!ending->is_busy || ending->why[0]) {
		return false;
	}
	if (ending->keeper->is_hurried || passed_ms > config->settings->lock_timeout_ms) {
		snprintf(ending->why, sizeof(ending->why),
			"another broker is syncing a workspace of it");
		return false;
	}
	ev_timer_set(&ending->again, ENDING_AGAIN_MS / 1000., 0.);
	ev_timer_start(ending->loop, &ending->again);
	return true;
}

static void on_looked(struct pool_job *job)
{
	struct ending *ending = CONTAINER_OF(job, struct ending, job);
	if (ending->is_ok && tries_again(ending)) {
		return;
	}
	if (!ending->is_ok) {
		ending_end(ending, &ending->err);
	} else if (ending->why[0] && ending->is_discarded) {
		error_set(&ending->err, ERROR_DENIED, "%s: nothing was discarded", ending->why);
		ending_end(ending, &ending->err);
	} else if (ending->why[0]) {
		log_info("the sandbox stays: %s", ending->why);
		stop_next(ending, NULL);
	} else {
		struct keeper *keeper = ending->keeper;
		point("keeper.looked");
		note_asked(ending);
		sandbox_destroy(keeper->config.sandbox, receipt_of(keeper), ending->is_discarded,
			on_destroyed, keeper);
	}
}

enum sandbox_fate keeper_fate(const struct keeper *keeper)
{
	const struct sandbox *sandbox = keeper->config.sandbox;
	const struct sync_settings *settings = keeper->config.settings;
	bool is_empty = list_is_empty(&keeper->keeps);
	bool is_transient = settings->persistence == PERSISTENCE_TRANSIENT;
	bool is_isolated = sandbox_capabilities(sandbox)->isolated;
	if (!is_isolated && !sandbox_can_rest(sandbox)) {
		return FATE_STAYS;
	}
	if (is_isolated && (is_empty ? sandbox_root_count(sandbox) > 0 || !sandbox_can_rest(sandbox)
				     : settings->mode == SYNC_MODE_NONE)) {
		return FATE_STAYS;
	}
	return is_transient ? FATE_ENDS : sandbox_can_rest(sandbox) ? FATE_RESTS : FATE_STAYS;
}

static struct ending *ending_create(struct keeper *keeper)
{
	const struct keeper_config *config = &keeper->config;
	struct ending *ending = mem_alloc_zero(sizeof(*ending));
	size_t count = 0;
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		count++;
	}
	ending->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_looked, .drop = ending_drop};
	ending->keeper = keeper;
	ending->loop = config->loop;
	soon_init(&ending->cut, config->loop, on_cut);
	ev_init(&ending->again, on_again);
	ending->began = ev_now(config->loop);
	ending->is_discarded = keeper->in_hand->kind == ORDER_DISCARD;
	ending->state_folder = mem_strdup(config->state_folder);
	ending->profile = mem_strdup(config->profile);
	ending->backend = mem_strdup(config->backend);
	ending->reference = mem_strdup_or_null(sandbox_reference(config->sandbox));
	ending->instance = mem_strdup_or_null(sandbox_instance(config->sandbox));
	ending->roots = mem_alloc_zero(count * sizeof(*ending->roots));
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		struct ending_root *root = &ending->roots[ending->count++];
		memcpy(root->id, keep->record.id, sizeof(root->id));
		memcpy(root->name, keep->name, sizeof(root->name));
		root->is_collected = keep->is_collected;
		root->receipt = keep->record.receipt;
		root->store_folder = mem_strdup(keep->store_folder);
		root->local_root = mem_strdup(keep->record.local_root);
		root->runtime_root = mem_strdup(keep->record.runtime_root);
		root->lock_fd = -1;
	}
	return ending;
}

void keeper_end_sandbox(struct keeper *keeper, enum sandbox_fate fate)
{
	struct error err;
	struct ending *ending = ending_create(keeper);
	ending->fate = fate;
	keeper->ending = ending;
	point("keeper.ending");
	if (fate == FATE_RESTS) { // only the provider has to check
		note_asked(ending);
		sandbox_rest(keeper->config.sandbox, receipt_of(keeper), on_destroyed, keeper);
	} else if (!pool_submit(keeper->config.pool, &ending->job, &err)) {
		ending_end(ending, &err);
	}
}

void keeper_drop_ending(struct keeper *keeper)
{
	if (keeper->ending) {
		pool_leave(&keeper->ending->job);
	}
}
