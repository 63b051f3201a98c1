/* SPDX-License-Identifier: MIT */
#include "broker/keeper_impl.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/state_folder.h"
#include "broker/timestamp.h"
#include "sync/id.h"

const char *sync_mode_name(enum sync_mode mode)
{
	static const char *const names[] = {"none", "session-bidirectional", "turn-bidirectional"};
	assert((size_t)mode < ARRAY_LENGTH(names));
	return names[mode];
}

/* ---- roots ---- */

static struct workspace *open_workspace(struct keep *keep)
{
	const struct keeper_config *config = &keep->keeper->config;
	const struct keeper_settings *settings = config->settings;
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
		.limits = settings->limits,
		.big_file_bytes = settings->big_file_bytes,
		.create_transport = sandbox_capabilities(config->sandbox)->isolated
	                                    ? transport_git_create
	                                    : transport_none_create,
		.timeout_ms = settings->timeout_ms,
		.lock_timeout_ms = settings->lock_timeout_ms,
		.max_checkpoints = (size_t)settings->max_checkpoints,
		.checkpoint_age_ms = settings->checkpoint_age_ms,
	});
}

static void keep_create(struct keeper *keeper, const struct sandbox_root *root)
{
	static const char *const persistences[] = {"transient", "reuse"};
	const struct keeper_config *config = &keeper->config;
	struct keep *keep = mem_alloc_zero(sizeof(*keep));
	struct record *record = &keep->record;
	uint64_t name = state_folder_hash(
		state_folder_hash(STATE_HASH_START, config->backend), config->profile);
	keep->keeper = keeper;
	record_init(record);
	record->profile = mem_strdup(config->profile);
	record->backend = mem_strdup(config->backend);
	record->sync = mem_strdup(sync_mode_name(config->settings->mode));
	record->persistence = mem_strdup(persistences[config->settings->persistence]);
	record->local_root = mem_strdup(root->local);
	record->runtime_root = mem_strdup(root->runtime);
	snprintf(keep->name, sizeof(keep->name), "%016" PRIx64,
		state_folder_hash(name, root->runtime));
	keep->store_folder = state_folder_store(config->state_folder, root->local);
	if (config->settings->mode != SYNC_MODE_NONE) {
		keep->workspace = open_workspace(keep);
	}
	list_append(&keeper->keeps, &keep->link);
}

void keep_destroy(struct keep *keep)
{
	list_remove(&keep->link);
	workspace_destroy(keep->workspace);
	record_finish(&keep->record);
	free(keep->store_folder);
	free(keep);
}

static bool is_kept(struct keeper *keeper, const char *local_root)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (strcmp(keep->record.local_root, local_root) == 0) {
			return true;
		}
	}
	return false;
}

void keeper_add_roots(struct keeper *keeper)
{
	const struct sandbox *sandbox = keeper->config.sandbox;
	for (size_t i = 0; i < sandbox_root_count(sandbox); i++) {
		const struct sandbox_root *root = sandbox_root_at(sandbox, i);
		if (!is_kept(keeper, root->local)) {
			keep_create(keeper, root);
		}
	}
}

/* ---- what is told of them ---- */

static void note_receipt(struct keep *keep, const struct sync_result *result)
{
	struct record_receipt *receipt = &keep->record.receipt;
	char now[TIMESTAMP_SIZE];
	id_text(receipt->runtime_tree, &result->runtime_tree);
	id_text(receipt->merged_tree, &result->tree);
	receipt->conflicts = result->conflict_count;
	snprintf(receipt->time, sizeof(receipt->time), "%s", timestamp_now(now));
	free(keep->record.error);
	keep->record.error = NULL;
}

static void note_last(struct keep *keep, enum sync_reason reason, const struct sync_result *result,
	const struct error *err)
{
	char now[TIMESTAMP_SIZE];
	struct last_sync *last = &keep->last;
	*last = (struct last_sync){.happened = true, .reason = reason};
	snprintf(last->time, sizeof(last->time), "%s", timestamp_now(now));
	if (err) {
		snprintf(last->error, sizeof(last->error), "%s", err->text);
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

void keep_note_sync(struct keep *keep, enum sync_reason reason, const struct sync_result *result,
	const struct error *err)
{
	note_last(keep, reason, result, err);
	if (err) {
		free(keep->record.error);
		keep->record.error = mem_strdup(err->text);
	} else {
		note_receipt(keep, result);
	}
}

bool keeper_at(const struct keeper *keeper, size_t index, struct kept *out_kept)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (index-- == 0) {
			*out_kept = (struct kept){
				.id = keep->record.id,
				.local_root = keep->record.local_root,
				.runtime_root = keep->record.runtime_root,
				.state = record_state_name(keep->record.state),
				.store_folder = keep->store_folder,
				.is_synced = keep->workspace != NULL,
				.last = &keep->last,
			};
			return true;
		}
	}
	return false;
}
