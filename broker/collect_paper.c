/* SPDX-License-Identifier: MIT */
#include "broker/collect_paper.h"

#include <stdlib.h>

#include "base/fd.h"
#include "base/log.h"
#include "broker/record_owner.h"

void collect_paper_free(struct collect_paper *paper)
{
	record_finish(&paper->record);
	fd_close(&paper->lock_fd);
	fd_close(&paper->folder_fd);
	free(paper->state_folder);
	free(paper);
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
	struct buf json;
	struct error err;
	buf_init(&json, RECORD_FILE_MAX);
	if (!record_write_json(&paper->record, &json, &err) ||
		!record_save(paper->folder_fd, paper->id, buf_span(&json), &err)) {
		log_error("%s", err.text);
	}
	buf_finish(&json);
}

void collect_paper_remove(struct pool_job *job)
{
	struct collect_paper *paper = CONTAINER_OF(job, struct collect_paper, job);
	paper->is_ok = record_remove(paper->folder_fd, paper->id, &paper->err);
}
