/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"
#include "broker/relay/listing_records.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/real_path.h"
#include "base/text.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "broker/relay/listing_records_impl.h"
#include "broker/session/answer.h"

/* The scan of the records, on the pool. It may outlive the request that waits for it. */
struct scan {
	struct waiting waiting; // the request
	struct pool_job job;
	struct relay *relay;
	char *state_folder, *profile; // owned
	const char *backend;          // static
	bool keeps_memory; // whether the agent keeps its memory when a sandbox is destroyed
	int folder_fd;     // of the records
	struct listing_records *records; // owned
};

static void scan_drop(struct pool_job *job)
{
	struct scan *scan = CONTAINER_OF(job, struct scan, job);
	desk_drop(&scan->waiting);
	listing_records_destroy(scan->records);
	free(scan->state_folder);
	free(scan->profile);
	free(scan);
}

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

struct list *listings_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

/* ---- on the pool ---- */

/*
 * A transient sandbox is destroyed once it is collected, and the agent's memory with it, unless
 * that memory is in the user's home.
 */
static bool has_ended(const struct scan *scan, const struct record *record)
{
	return !scan->keeps_memory && record->state == RECORD_STOPPED &&
	       strcmp(record->persistence, persistence_name(PERSISTENCE_TRANSIENT)) == 0;
}

static bool may_be_loaded(const struct scan *scan, const struct record *record)
{
	struct record_owner owner;
	const char *real = scan->records->real;
	if (!record->reference || record->session_count == 0 || has_ended(scan, record) ||
		strcmp(record->profile, scan->profile) != 0 ||
		strcmp(record->backend, scan->backend) != 0 ||
		(real && strcmp(record->local_root, real) != 0) ||
		access(record->local_root, F_OK) != 0) {
		return false;
	}
	record_owner_find(scan->folder_fd, record->id, &owner);
	bool is_free = !owner.is_held || (owner.pid != 0 && !owner.is_session);
	record_owner_finish(&owner);
	return is_free;
}

static void on_record(void *data, const char *id)
{
	struct scan *scan = data;
	struct listing_records *records = scan->records;
	struct record record;
	struct error ignored; // acp-broker sessions list shows the error
	if (!record_load(scan->folder_fd, id, &record, &ignored)) {
		return;
	}
	if (!may_be_loaded(scan, &record)) {
		record_finish(&record);
		return;
	}
	records->records =
		mem_realloc(records->records, (records->count + 1) * sizeof(*records->records));
	records->records[records->count++] = record;
}

static void run(struct pool_job *job)
{
	struct scan *scan = CONTAINER_OF(job, struct scan, job);
	struct error err;
	char path[FILE_PATH_MAX];
	text_whole(path, sizeof(path), "%s/sessions", scan->state_folder);
	if (scan->records->name) {
		scan->records->real = real_path(scan->records->name);
	}
	scan->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (scan->folder_fd >= 0 && !record_visit(scan->folder_fd, on_record, scan, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err, "session/list: %s", err.text);
	}
	fd_close(&scan->folder_fd);
}

/* ---- on the loop ---- */

static void on_done(struct pool_job *job)
{
	struct scan *scan = CONTAINER_OF(job, struct scan, job);
	struct relay *relay = scan->relay;
	struct call call;
	scan->records->id = mem_strdup(scan->waiting.id);
	list_append(listings_of(relay), &scan->records->link);
	scan->records = NULL;
	if (desk_open(&scan->waiting, &call)) {
		bool is_taken = relay->ops->on_editor_call(relay, &call);
		(void)is_taken; // always true for a request
	}
	scan_drop(job);
}

static void leave(struct scan *scan)
{
	desk_drop(&scan->waiting);
	pool_leave(&scan->job);
}

static struct scan *scan_create(struct relay *relay, const struct call *call)
{
	char cwd[FILE_PATH_MAX];
	struct scan *scan = mem_alloc_zero(sizeof(*scan));
	scan->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = on_done, .drop = scan_drop};
	scan->relay = relay;
	scan->state_folder = mem_strdup(relay->config.state_folder);
	scan->profile = mem_strdup(relay->config.profile->name);
	scan->backend = relay->config.profile->backend;
	scan->keeps_memory = relay_is_per_session(relay);
	scan->folder_fd = -1;
	struct span filter = message_place(&call->message, PLACE_CWD);
	scan->records = mem_alloc_zero(sizeof(*scan->records));
	list_init(&scan->records->link);
	scan->records->cwd = filter.len > 0 ? mem_strndup(filter) : NULL;
	if (message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		scan->records->name = mem_strdup(cwd);
	}
	return scan;
}

static bool may_wait(const struct relay *relay, const struct call *call, struct error *err)
{
	struct desk_load load = desk_load(&relay->desk, (struct desk_pick){.stage = STAGE_LIST});
	if (load.count < LISTING_SCANS_MAX && desk_has_room(&relay->desk, STAGE_LIST, call)) {
		return true;
	}
	return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		"session/list: %d such requests are already waiting; try again once they are "
		"answered",
		load.count);
}

static bool start_scan(struct relay *relay, const struct call *call, struct error *err)
{
	if (!may_wait(relay, call, err)) {
		return false;
	}
	struct scan *scan = scan_create(relay, call);
	if (!pool_submit(relay->config.pool, &scan->job, err)) {
		scan_drop(&scan->job);
		return false;
	}
	desk_hold(&relay->desk, &scan->waiting, STAGE_LIST, NULL, call);
	return true;
}

static bool can_load(struct relay *relay)
{
	const struct offers *offers = handshake_offers(relay);
	return offers->load || offers->resume;
}

bool listing_records_hold(struct relay *relay, const struct call *call)
{
	struct error err;
	struct span cursor = message_place(&call->message, PLACE_CURSOR);
	if (!call_is_new(call) || !relay->config.state_folder || !relay->config.pool ||
		!can_load(relay) || call->method->route != ROUTE_LIST) {
		return false;
	}
	if (cursor.len > 0 && !span_is(cursor, "null")) {
		listing_records_go_on(relay, call);
		return false;
	}
	if (!start_scan(relay, call, &err)) {
		relay_fail(relay, call->message.id, error_at(&err, "relay"));
	}
	return true;
}

/* ---- the request no longer waits ---- */

static struct scan *scan_of(struct waiting *waiting)
{
	return CONTAINER_OF(waiting, struct scan, waiting);
}

void listing_records_on_left(struct waiting *waiting, const struct error *failure)
{
	leave(scan_of(waiting));
}

void listing_records_on_gone(struct waiting *waiting)
{
	leave(scan_of(waiting));
}

void listing_records_finish(struct relay *relay)
{
	LIST_FOR_EACH(listed, listings_of(relay), struct listing_records, link) {
		listing_records_destroy(listed);
	}
}
