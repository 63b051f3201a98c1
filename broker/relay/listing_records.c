/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"
#include "broker/relay/listing_records.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/real_path.h"
#include "broker/ledger/record.h"
#include "broker/ledger/record_owner.h"
#include "broker/relay/listing_records_impl.h"
#include "broker/relay/relay_editor.h"
#include "broker/session/answer.h"

/* The look at the records, on the pool; outlives who waits for it. */
struct look {
	struct waiting waiting; // the request
	struct pool_job job;
	struct relay *relay;
	char *state_folder, *profile;    // owned
	const char *backend;             // static
	int folder_fd;                   // of the records
	struct listing_records *records; // owned
};

static void look_drop(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	desk_drop(&look->waiting);
	listing_records_destroy(look->records);
	free(look->state_folder);
	free(look->profile);
	free(look);
}

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

struct list *listings_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

/* ---- on the pool ---- */

/* A transient sandbox is destroyed once it was collected, and the agent's memory with it. */
static bool has_ended(const struct record *record)
{
	return record->state == RECORD_STOPPED &&
	       strcmp(record->persistence, persistence_name(PERSISTENCE_TRANSIENT)) == 0;
}

static bool may_be_loaded(const struct look *look, const struct record *record)
{
	struct record_owner owner;
	const char *real = look->records->real;
	if (!record->reference || record->session_count == 0 || has_ended(record) ||
		strcmp(record->profile, look->profile) != 0 ||
		strcmp(record->backend, look->backend) != 0 ||
		(real && strcmp(record->local_root, real) != 0) ||
		access(record->local_root, F_OK) != 0) {
		return false;
	}
	record_owner_find(look->folder_fd, record->id, &owner);
	bool is_free = !owner.is_held || (owner.pid != 0 && !owner.is_session);
	record_owner_finish(&owner);
	return is_free;
}

static void look_at(void *data, const char *id)
{
	struct look *look = data;
	struct listing_records *records = look->records;
	struct record record;
	struct error ignored; // acp-broker sessions says what is wrong with it
	if (!record_load(look->folder_fd, id, &record, &ignored)) {
		return;
	}
	if (!may_be_loaded(look, &record)) {
		record_finish(&record);
		return;
	}
	records->records =
		mem_realloc(records->records, (records->count + 1) * sizeof(*records->records));
	records->records[records->count++] = record;
}

static void run(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	struct error err;
	char path[FILE_PATH_MAX];
	snprintf(path, sizeof(path), "%s/sessions", look->state_folder);
	if (look->records->name) {
		look->records->real = real_path(look->records->name);
	}
	look->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (look->folder_fd >= 0 && !record_visit(look->folder_fd, look_at, look, &err)) {
		log_warning("session/list: %s", err.text);
	}
	fd_close(&look->folder_fd);
}

/* ---- on the loop ---- */

static void on_done(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	struct relay *relay = look->relay;
	struct call call;
	look->records->id = mem_strdup(look->waiting.id);
	list_append(listings_of(relay), &look->records->link);
	look->records = NULL;
	if (desk_open(&look->waiting, &call)) {
		bool is_taken = relay_on_editor_call(relay, &call);
		(void)is_taken; // a request always is
	}
	look_drop(job);
}

static void leave(struct look *look)
{
	desk_drop(&look->waiting);
	pool_leave(&look->job);
}

static struct look *look_create(struct relay *relay, const struct call *call)
{
	char cwd[FILE_PATH_MAX];
	struct look *look = mem_alloc_zero(sizeof(*look));
	look->job = (struct pool_job){
		.lane = POOL_LANE_WORK, .run = run, .done = on_done, .drop = look_drop};
	look->relay = relay;
	look->state_folder = mem_strdup(relay->config.state_folder);
	look->profile = mem_strdup(relay->config.profile->name);
	look->backend = relay->config.profile->backend;
	look->folder_fd = -1;
	struct span filter = message_place(&call->message, PLACE_CWD);
	look->records = mem_alloc_zero(sizeof(*look->records));
	list_init(&look->records->link);
	look->records->cwd = filter.len > 0 ? mem_strndup(filter) : NULL;
	if (message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		look->records->name = mem_strdup(cwd);
	}
	return look;
}

static bool may_wait(const struct relay *relay, const struct call *call, struct error *err)
{
	struct desk_load load = desk_load(&relay->desk, (struct desk_pick){.stage = STAGE_LIST});
	if (load.count < LISTING_LOOKS_MAX && desk_has_room(&relay->desk, STAGE_LIST, call)) {
		return true;
	}
	return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		"session/list: %d of them wait already; try again once they were answered",
		load.count);
}

static bool start_look(struct relay *relay, const struct call *call, struct error *err)
{
	if (!may_wait(relay, call, err)) {
		return false;
	}
	struct look *look = look_create(relay, call);
	if (!pool_submit(relay->config.pool, &look->job, err)) {
		look_drop(&look->job);
		return false;
	}
	desk_hold(&relay->desk, &look->waiting, STAGE_LIST, NULL, call);
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
	if (!start_look(relay, call, &err)) {
		relay_fail(relay, call->message.id, error_at(&err, "relay"));
	}
	return true;
}

/* ---- nobody waits any more ---- */

static struct look *look_of(struct waiting *waiting)
{
	return CONTAINER_OF(waiting, struct look, waiting);
}

void listing_records_on_left(struct waiting *waiting, const struct error *failure)
{
	leave(look_of(waiting));
}

void listing_records_on_gone(struct waiting *waiting)
{
	leave(look_of(waiting));
}

void listing_records_finish(struct relay *relay)
{
	LIST_FOR_EACH(listed, listings_of(relay), struct listing_records, link) {
		listing_records_destroy(listed);
	}
}
