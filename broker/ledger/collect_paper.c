/* SPDX-License-Identifier: MIT */
#include "broker/ledger/collect_paper.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "broker/ledger/record_owner.h"

void collect_paper_free(struct collect_paper *paper)
{
	record_finish(&paper->record);
	fd_close(&paper->lock_fd);
	fd_close(&paper->folder_fd);
	free(paper->state_folder);
	free(paper);
}

struct record collect_paper_copy(const struct collect_paper *paper)
{
	const struct record *record = &paper->record;
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
	copy.reference = mem_strdup_or_null(record->reference);
	copy.instance = mem_strdup_or_null(record->instance);
	copy.error = mem_strdup_or_null(record->error);
	return copy;
}

bool collect_paper_check(
	const struct collect_paper *paper, const struct profile *profile, struct error *err)
{
	const struct record *record = &paper->record;
	const char *backend = backend_name(profile->backend);
	if (strcmp(record->profile, profile->name) != 0 || strcmp(record->backend, backend) != 0) {
		return error_set(err, ERROR_CONFIG,
			"it is of profile \"%s\" with backend %s, and the configuration has "
			"backend %s there",
			record->profile, record->backend, backend);
	}
	return true;
}

void collect_paper_read(struct pool_job *job)
{
	struct collect_paper *paper = CONTAINER_OF(job, struct collect_paper, job);
	struct error *err = &paper->err;
	paper->folder_fd = record_folder_open(paper->state_folder, err);
	/* Read before it is locked: what does not exist is not to get a lock file. */
	paper->is_ok = paper->folder_fd >= 0 &&
	               record_load(paper->folder_fd, paper->id, &paper->record, err);
	if (!paper->is_ok) {
		return;
	}
	paper->lock_fd = record_lock(paper->folder_fd, paper->id, err);
	paper->is_held = paper->lock_fd < 0 && err->code == ERROR_UNAVAILABLE;
	paper->is_ok = paper->lock_fd >= 0;
	if (paper->is_ok) {
		record_owner_note(paper->lock_fd, false);
		record_finish(&paper->record); // it may have been written since
		paper->is_ok = record_load(paper->folder_fd, paper->id, &paper->record, err);
	}
}

void collect_paper_write(struct pool_job *job)
{
	struct collect_paper *paper = CONTAINER_OF(job, struct collect_paper, job);
	struct error err;
	if (!record_put(paper->folder_fd, &paper->record, &err)) {
		log_error("%s", err.text);
	}
}

void collect_paper_remove(struct pool_job *job)
{
	struct collect_paper *paper = CONTAINER_OF(job, struct collect_paper, job);
	paper->is_ok = record_remove(paper->folder_fd, paper->id, &paper->err);
}
