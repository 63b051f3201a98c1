/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/real_path.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/words.h"
#include "broker/ledger/state_folder.h"
#include "sync/id.h"

/* ---- roots ---- */

static transport_create *choose_transport(const struct keeper_config *config)
{
	static transport_create *const by[] = {
		[SYNC_TRANSPORT_AUTO] = transport_auto_create,
		[SYNC_TRANSPORT_GIT] = transport_git_create,
		[SYNC_TRANSPORT_RSYNC] = transport_rsync_create,
	};
	bool is_isolated = sandbox_capabilities(config->sandbox)->isolated;
	return config->settings->create_transport ? config->settings->create_transport
	       : is_isolated                      ? by[config->settings->transport]
	                                          : transport_none_create;
}

static struct workspace *open_workspace(struct keep *keep)
{
	const struct keeper_config *config = &keep->keeper->config;
	const struct sync_settings *settings = config->settings;
	return workspace_create(&(struct workspace_request){
		.loop = config->loop,
		.pool = config->pool,
		.sandbox = config->sandbox,
		.store_folder = keep->store_folder,
		.name = keep->name,
		.local_root = keep->record.local_root,
		.runtime_root = keep->record.runtime_root,
		.home = config->home,
		.include = (const char *const *)settings->include,
		.exclude = (const char *const *)settings->exclude,
		.guard_paths = settings->guard_paths,
		.limits = settings->limits,
		.big_file_bytes = settings->big_file_bytes,
		.create_transport = choose_transport(config),
		.tools = config->tools,
		.timeout_ms = settings->timeout_ms,
		.lock_timeout_ms = settings->lock_timeout_ms,
		.max_checkpoints = (size_t)settings->max_checkpoints,
		.checkpoint_age_ms = settings->checkpoint_age_ms,
		.guard = keeper_turn_guard(config, keep->record.local_root),
	});
}

void keeper_init_record(struct keeper *keeper, struct record *record, const char *local_root)
{
	const struct keeper_config *config = &keeper->config;
	record_init(record);
	record->profile = mem_strdup(config->profile);
	record->backend = mem_strdup(config->backend);
	record->agent = mem_strdup_or_null(config->agent);
	record->sync = mem_strdup(sync_mode_name(config->settings->mode));
	record->persistence = mem_strdup(persistence_name(config->settings->persistence));
	record->local_root = mem_strdup(local_root);
	record->reference = mem_strdup_or_null(sandbox_reference(config->sandbox));
	record->instance = mem_strdup_or_null(sandbox_instance(config->sandbox));
}

static struct keep *keep_create(struct keeper *keeper, const struct sandbox_root *root)
{
	const struct keeper_config *config = &keeper->config;
	struct keep *keep = mem_alloc_zero(sizeof(*keep));
	struct record *record = &keep->record;
	keep->keeper = keeper;
	turn_lock_init(&keep->turn);
	keep->has_told_state = keeper_take_announced(keeper, root->local, record);
	keep->told = record->state;
	if (!keep->has_told_state) {
		keeper_init_record(keeper, record, root->local);
	}
	mem_set_text(&record->runtime_root, root->runtime);
	state_folder_sandbox(
		keep->name, config->backend, config->profile, root->runtime, record->instance);
	keep->store_folder = state_folder_store(config->state_folder, root->local);
	if (config->settings->mode != SYNC_MODE_NONE) {
		keep->workspace = open_workspace(keep);
	}
	list_append(&keeper->keeps, &keep->link);
	return keep;
}

void keep_destroy(struct keep *keep)
{
	list_remove(&keep->link);
	workspace_destroy(keep->workspace);
	turn_lock_finish(&keep->turn);
	words_free(keep->names);
	record_finish(&keep->record);
	free(keep->store_folder);
	free(keep);
}

static size_t length_without_slashes(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/') {
		len--;
	}
	return len;
}

static bool is_called(const struct keep *keep, const char *name)
{
	size_t len = length_without_slashes(name);
	for (size_t i = 0; keep->names[i]; i++) {
		if (length_without_slashes(keep->names[i]) == len &&
			memcmp(keep->names[i], name, len) == 0) {
			return true;
		}
	}
	return false;
}

bool keep_is_named(const struct keep *keep, char *const *names)
{
	for (; *names; names++) {
		if (is_called(keep, *names)) {
			return true;
		}
	}
	return false;
}

/* ---- new roots: their real paths ---- */

struct naming {
	struct pool_job job;
	struct keeper *keeper;
	struct sandbox_root *roots; // owned, like the strings in it
	char **real;                // owned, like the strings in it; real paths of the local names
	size_t count;
};

static void naming_drop(struct pool_job *job)
{
	struct naming *naming = CONTAINER_OF(job, struct naming, job);
	for (size_t i = 0; i < naming->count; i++) {
		free((char *)naming->roots[i].local);
		free((char *)naming->roots[i].runtime);
		free(naming->real[i]);
	}
	free(naming->roots);
	free(naming->real);
	free(naming);
}

static struct keep *keep_of(struct keeper *keeper, const char *real)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (strcmp(keep->record.local_root, real) == 0) {
			return keep;
		}
	}
	return NULL;
}

bool keeper_has_root(struct keeper *keeper, const char *real)
{
	return keep_of(keeper, real) != NULL;
}

static void take_roots(struct keeper *keeper, const struct naming *naming)
{
	for (size_t i = 0; i < naming->count; i++) {
		const struct sandbox_root *root = &naming->roots[i];
		struct keep *keep = keep_of(keeper, naming->real[i]);
		if (!keep) {
			keep = keep_create(keeper, &(struct sandbox_root){.local = naming->real[i],
							   .runtime = root->runtime});
		}
		words_append(&keep->names, root->local);
		words_append(&keep->names, root->runtime);
	}
	keeper->root_count += naming->count;
}

static void on_run(struct pool_job *job)
{
	struct naming *naming = CONTAINER_OF(job, struct naming, job);
	for (size_t i = 0; i < naming->count; i++) {
		naming->real[i] = real_path(naming->roots[i].local);
	}
}

static void on_named(struct pool_job *job)
{
	struct naming *naming = CONTAINER_OF(job, struct naming, job);
	struct keeper *keeper = naming->keeper;
	keeper->naming = NULL;
	take_roots(keeper, naming);
	naming_drop(job);
	keeper_next(keeper);
}

static struct naming *naming_create(struct keeper *keeper, size_t count)
{
	struct naming *naming = mem_alloc_zero(sizeof(*naming));
	naming->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = on_run, .done = on_named, .drop = naming_drop};
	naming->keeper = keeper;
	naming->count = count;
	naming->roots = mem_alloc_zero(count * sizeof(*naming->roots));
	naming->real = mem_alloc_zero(count * sizeof(*naming->real));
	for (size_t i = 0; i < count; i++) {
		const struct sandbox_root *root =
			sandbox_root_at(keeper->config.sandbox, keeper->root_count + i);
		naming->roots[i] = (struct sandbox_root){
			.local = mem_strdup(root->local), .runtime = mem_strdup(root->runtime)};
	}
	return naming;
}

bool keeper_add_roots(struct keeper *keeper)
{
	struct error err;
	size_t count = sandbox_root_count(keeper->config.sandbox) - keeper->root_count;
	if (count == 0) {
		return false;
	}
	struct naming *naming = naming_create(keeper, count);
	if (!pool_submit(keeper->config.pool, &naming->job, &err)) {
		naming_drop(&naming->job);
		keeper_end_order(keeper, &err);
		return true;
	}
	keeper->naming = naming;
	return true;
}

void keeper_drop_naming(struct keeper *keeper)
{
	if (keeper->naming) {
		pool_leave(&keeper->naming->job);
	}
}

/* ---- reports ---- */

/*
 * Only the last sync proves that everything is here. After any other sync the agent may go on, even
 * after the one that follows its crash.
 */
static void note_receipt(
	struct keep *keep, const struct order *order, const struct sync_result *result)
{
	struct record_receipt *receipt = &keep->record.receipt;
	free(keep->record.error);
	keep->record.error = NULL;
	if (order->kind != ORDER_CLOSE) {
		return;
	}
	char now[TIMESTAMP_SIZE];
	keep->is_collected = true;
	id_text(receipt->runtime_tree, &result->runtime_tree);
	id_text(receipt->merged_tree, &result->tree);
	receipt->conflicts = result->conflict_count;
	text_whole(receipt->time, sizeof(receipt->time), "%s", timestamp_now(now));
}

static void note_last(struct keep *keep, enum sync_reason reason, const struct sync_result *result,
	const struct error *err)
{
	char now[TIMESTAMP_SIZE];
	struct last_sync *last = &keep->last;
	*last = (struct last_sync){.happened = true, .reason = reason};
	text_whole(last->time, sizeof(last->time), "%s", timestamp_now(now));
	if (err) {
		text_format(last->error, sizeof(last->error), "%s", err->text);
		return;
	}
	last->duration_ms = result->duration_ms;
	last->files = result->files;
	last->conflicts = result->conflict_count;
	last->to_local = result->to_local;
	last->to_runtime = result->to_runtime;
	last->sent_bytes = result->sent_bytes;
	last->received_bytes = result->received_bytes;
	last->checkpoint = result->checkpoint;
}

void keep_note_sync(struct keep *keep, const struct order *order, const struct sync_result *result,
	const struct error *err)
{
	note_last(keep, order->sync.reason, result, err);
	const char *transport = workspace_transport(keep->workspace);
	if (!err && !keep->has_told_transport && transport) {
		keep->has_told_transport = true;
		log_info("%s: synced by %s", keep->record.local_root, transport);
	}
	if (err) {
		mem_set_text(&keep->record.error, err->text);
	} else {
		note_receipt(keep, order, result);
	}
}

void keeper_tell_state(struct keeper *keeper, const struct record *record, const char *previous)
{
	if (keeper->config.listener->on_state) {
		keeper->config.listener->on_state(
			keeper->config.data, &(struct keeper_state){record, previous});
	}
}

void keep_tell_state(struct keep *keep)
{
	enum record_state state = keep->record.state;
	const char *previous = keep->has_told_state ? record_state_name(keep->told) : NULL;
	if (!keep->has_told_state || keep->told != state) {
		keep->has_told_state = true;
		keep->told = state;
		keeper_tell_state(keep->keeper, &keep->record, previous);
	}
}

static struct kept describe(const struct keep *keep)
{
	return (struct kept){
		.id = keep->record.id,
		.local_root = keep->record.local_root,
		.runtime_root = keep->record.runtime_root,
		.reference = keep->record.reference,
		.state = record_state_name(keep->record.state),
		.store_folder = keep->store_folder,
		.is_synced = keep->workspace != NULL,
		.transport = keep->workspace ? workspace_transport(keep->workspace) : NULL,
		.last = &keep->last,
	};
}

bool keeper_at(const struct keeper *keeper, size_t index, struct kept *out_kept)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (index-- == 0) {
			*out_kept = describe(keep);
			return true;
		}
	}
	return false;
}

bool keeper_find(const struct keeper *keeper, const char *root, struct kept *out_kept)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (is_called(keep, root)) {
			*out_kept = describe(keep);
			return true;
		}
	}
	return false;
}
