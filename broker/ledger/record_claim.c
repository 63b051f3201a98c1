/* SPDX-License-Identifier: MIT */
#include "broker/ledger/record_claim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "broker/ledger/record_owner.h"

struct search {
	const struct claim_request *request;
	int folder_fd;
	char (*ids)[RECORD_ID_SIZE]; // owned
	size_t count;
};

/* A missing folder holds no records. */
static int open_folder(const char *state_folder)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/sessions", state_folder);
	return len < (int)sizeof(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
}

static bool is_meant(const struct claim_request *request, const struct record *record)
{
	bool has = false;
	for (size_t i = 0; i < record->session_count; i++) {
		has = has || strcmp(record->sessions[i], request->session_id) == 0;
	}
	return has && strcmp(record->profile, request->profile) == 0 &&
	       strcmp(record->backend, request->backend) == 0;
}

static void look_at(void *data, const char *id)
{
	struct search *search = data;
	struct record record;
	struct error ignored; // commands that list records report unreadable ones
	if (!record_load(search->folder_fd, id, &record, &ignored)) {
		return;
	}
	if (is_meant(search->request, &record)) {
		search->ids = mem_realloc(search->ids, (search->count + 1) * sizeof(*search->ids));
		memcpy(search->ids[search->count++], record.id, RECORD_ID_SIZE);
	}
	record_finish(&record);
}

/* All brokers take the locks in the same order, so that one of two gets all of them. */
static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void add(struct record_claim *claim, const struct record *record, int lock_fd)
{
	claim->records = mem_realloc(claim->records, (claim->count + 1) * sizeof(*claim->records));
	claim->lock_fds =
		mem_realloc(claim->lock_fds, (claim->count + 1) * sizeof(*claim->lock_fds));
	claim->records[claim->count] = *record;
	claim->lock_fds[claim->count++] = lock_fd;
}

/* Finds who has it. True if it is another broker. */
static bool is_held(const struct search *search, const char *id, struct record_claim *claim)
{
	struct record record;
	struct record_owner owner;
	struct error ignored;
	record_owner_find(search->folder_fd, id, &owner);
	bool is_ours = owner.pid == getpid() && owner.is_session;
	if (!is_ours) {
		claim->holder = owner.pid;
		claim->is_ending = !owner.is_held || (owner.pid != 0 && !owner.is_session);
		memcpy(claim->holder_id, id, RECORD_ID_SIZE);
	}
	record_owner_finish(&owner);
	if (!is_ours && record_load(search->folder_fd, id, &record, &ignored)) {
		claim->is_ending = claim->is_ending || record.state == RECORD_COLLECTING ||
		                   record.state == RECORD_STOPPED;
		record_finish(&record);
	}
	return !is_ours;
}

static bool take(const struct search *search, const char *id, struct record_claim *claim)
{
	struct record record;
	struct error ignored;
	int lock_fd = record_lock(search->folder_fd, id, &claim->err);
	if (lock_fd < 0) {
		claim->has_failed = claim->err.code != ERROR_UNAVAILABLE;
		return !claim->has_failed && !is_held(search, id, claim);
	}
	/* Another broker may have written it since we looked. */
	if (!record_load(search->folder_fd, id, &record, &ignored)) {
		fd_close(&lock_fd);
	} else if (!is_meant(search->request, &record)) {
		record_finish(&record);
		fd_close(&lock_fd);
	} else {
		record_owner_note(lock_fd, false); // no session of ours runs in that sandbox
		add(claim, &record, lock_fd);
	}
	return true;
}

enum claim_outcome record_claim_take(
	const struct claim_request *request, struct record_claim *out_claim)
{
	struct error err;
	bool is_ours = true;
	struct search search = {
		.request = request, .folder_fd = open_folder(request->state_folder)};
	*out_claim = (struct record_claim){0};
	if (search.folder_fd >= 0 && !record_visit(search.folder_fd, look_at, &search, &err)) {
		log_failure(
			LOG_LEVEL_WARNING, &err, "session %s: %s", request->session_id, err.text);
	}
	if (search.count > 1) {
		qsort(search.ids, search.count, sizeof(*search.ids), compare);
	}
	for (size_t i = 0; is_ours && i < search.count; i++) {
		is_ours = take(&search, search.ids[i], out_claim);
	}
	free(search.ids);
	fd_close(&search.folder_fd);
	if (!is_ours) {
		record_claim_finish(out_claim);
		return out_claim->has_failed ? CLAIM_FAILED : CLAIM_HELD;
	}
	return out_claim->count > 0 ? CLAIM_TAKEN : CLAIM_NONE;
}

/* Whether one of our records that was not taken over has the session. */
static bool has_successor(const struct search *search, const struct record_claim *claim)
{
	bool has = false;
	for (size_t i = 0; !has && i < search->count; i++) {
		struct record_owner owner;
		bool is_old = false;
		for (size_t j = 0; j < claim->count; j++) {
			is_old = is_old || strcmp(claim->records[j].id, search->ids[i]) == 0;
		}
		record_owner_find(search->folder_fd, search->ids[i], &owner);
		has = !is_old && owner.pid == getpid();
		record_owner_finish(&owner);
	}
	return has;
}

static bool write_moved(
	int folder_fd, struct record *record, const char *session_id, struct error *err)
{
	char now[TIMESTAMP_SIZE];
	record_remove_session(record, session_id);
	text_whole(record->updated, sizeof(record->updated), "%s", timestamp_now(now));
	return record_put(folder_fd, record, err);
}

bool record_claim_move(
	const struct claim_request *request, struct record_claim *claim, struct error *err)
{
	struct search search = {.request = request};
	search.folder_fd = record_folder_open(request->state_folder, err);
	bool ok = search.folder_fd >= 0 && record_visit(search.folder_fd, look_at, &search, err);
	if (ok && !has_successor(&search, claim)) {
		ok = error_set(err, ERROR_NOT_FOUND,
			"no record of this broker has it, so the records of the broker that is "
			"gone keep it");
	}
	for (size_t i = 0; ok && i < claim->count; i++) {
		ok = write_moved(search.folder_fd, &claim->records[i], request->session_id, err);
	}
	free(search.ids);
	fd_close(&search.folder_fd);
	return ok;
}

void record_claim_finish(struct record_claim *claim)
{
	for (size_t i = 0; i < claim->count; i++) {
		record_finish(&claim->records[i]);
		fd_close(&claim->lock_fds[i]);
	}
	free(claim->records);
	free(claim->lock_fds);
	claim->records = NULL;
	claim->lock_fds = NULL;
	claim->count = 0;
}
