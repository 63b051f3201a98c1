/* SPDX-License-Identifier: MIT */
#include "broker/ledger/collect_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "broker/ledger/record_owner.h"
#include "broker/ledger/state_folder.h"
#include "sync/round.h"
#include "sync/store.h"
#include "sync/store_lock.h"

void collect_record_drop(struct pool_job *job)
{
	struct collect_record *taken = CONTAINER_OF(job, struct collect_record, job);
	record_finish(&taken->record);
	fd_close(&taken->lock_fd);
	fd_close(&taken->folder_fd);
	free(taken->state_folder);
	free(taken);
}

struct record collect_record_copy(const struct collect_record *taken)
{
	const struct record *record = &taken->record;
	struct record copy = *record;
	copy.sessions = NULL;
	copy.choices = NULL;
	copy.session_count = 0;
	copy.profile = mem_strdup(record->profile);
	copy.backend = mem_strdup(record->backend);
	copy.sync = mem_strdup(record->sync);
	copy.persistence = mem_strdup(record->persistence);
	copy.local_root = mem_strdup(record->local_root);
	copy.runtime_root = mem_strdup_or_null(record->runtime_root);
	copy.agent = mem_strdup_or_null(record->agent);
	copy.reference = mem_strdup_or_null(record->reference);
	copy.instance = mem_strdup_or_null(record->instance);
	copy.error = mem_strdup_or_null(record->error);
	return copy;
}

bool collect_record_check(
	const struct collect_record *taken, const struct profile *profile, struct error *err)
{
	const struct record *record = &taken->record;
	const char *backend = profile->backend;
	if (strcmp(record->profile, profile->name) != 0 || strcmp(record->backend, backend) != 0) {
		return error_set(err, ERROR_CONFIG,
			"it belongs to profile \"%s\" with backend %s, but the configuration has "
			"backend %s for this profile",
			record->profile, record->backend, backend);
	}
	return true;
}

void collect_record_read(struct pool_job *job)
{
	struct collect_record *taken = CONTAINER_OF(job, struct collect_record, job);
	struct error *err = &taken->err;
	taken->folder_fd = record_folder_open(taken->state_folder, err);
	/* Read before it is locked, so that a missing record does not get a lock file. */
	taken->is_ok = taken->folder_fd >= 0 &&
	               record_load(taken->folder_fd, taken->id, &taken->record, err);
	if (!taken->is_ok) {
		return;
	}
	taken->lock_fd = record_lock(taken->folder_fd, taken->id, err);
	taken->is_held = taken->lock_fd < 0 && err->code == ERROR_UNAVAILABLE;
	taken->is_ok = taken->lock_fd >= 0;
	if (taken->is_ok) {
		record_owner_note(taken->lock_fd, false);
		record_finish(&taken->record); // another broker may have written it since
		taken->is_ok = record_load(taken->folder_fd, taken->id, &taken->record, err);
	}
}

void collect_record_write(struct pool_job *job)
{
	struct collect_record *taken = CONTAINER_OF(job, struct collect_record, job);
	struct error err;
	if (!record_put(taken->folder_fd, &taken->record, &err)) {
		log_failure(LOG_LEVEL_ERROR, &err, "%s", err.text);
	}
}

/*
 * If somebody is syncing, the base stays. That does no harm, because no other sandbox has this
 * instance.
 */
static void forget_base(const struct collect_record *taken)
{
	const struct record *record = &taken->record;
	char name[STATE_FOLDER_NAME_SIZE];
	struct error err;
	struct store store;
	int lock_fd = -1;
	if (!taken->is_gone || !record->runtime_root || !record->instance) {
		return;
	}
	char *folder = state_folder_store(taken->state_folder, record->local_root);
	state_folder_sandbox(
		name, record->backend, record->profile, record->runtime_root, record->instance);
	if (store_lock_find(folder, &lock_fd, &err) && lock_fd >= 0 && store_lock_try(lock_fd) &&
		store_open(&store, folder, 0, &err)) {
		if (!round_forget_base(&store, name, &err)) {
			log_failure(LOG_LEVEL_WARNING, &err, "%s", err.text);
		}
		store_close(&store);
	}
	fd_close(&lock_fd);
	free(folder);
}

void collect_record_remove(struct pool_job *job)
{
	struct collect_record *taken = CONTAINER_OF(job, struct collect_record, job);
	forget_base(taken);
	taken->is_ok = record_remove(taken->folder_fd, taken->id, &taken->err);
}
