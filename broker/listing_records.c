/* SPDX-License-Identifier: MIT */
#include "broker/listing_records.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/json_doc.h"
#include "base/log.h"
#include "base/real_path.h"
#include "broker/record.h"
#include "broker/record_owner.h"

enum { SEEN_MAX = 16384, ADDED_MAX = 1024 }; // sessions of one list

/* Of one list: from its first page to its last. */
struct listing_records {
	struct list link; // relay.listings, unless a request has it
	char *id;         // owned; raw; of the request for a page that goes to an agent, or NULL
	char *cursor;     // owned; of the page that may be asked for next, or NULL
	char *cwd;        // owned; the filter of the list, raw; may be NULL
	struct record *records; // owned; those whose sessions may be added
	size_t count;
	uint64_t *seen; // owned; a hash of each session that was listed
	size_t seen_count;
	bool is_full; // more were listed than can be told apart: nothing is added
};

/* The look at the records, on the pool; outlives who waits for it. */
struct look {
	struct list link; // relay.list_looks
	struct pool_job job;
	struct relay *relay;             // NULL: nobody waits for it
	struct parcel *parcel;           // owned; the request; counts in relay.held_bytes
	char *id;                        // owned; raw
	char *state_folder, *profile;    // owned
	char *cwd;                       // owned; the filter; may be NULL
	const char *backend;             // static
	int folder_fd;                   // of the records
	struct listing_records *records; // owned
};

void listing_records_destroy(struct listing_records *listed)
{
	if (!listed) {
		return;
	}
	for (size_t i = 0; i < listed->count; i++) {
		record_finish(&listed->records[i]);
	}
	list_remove(&listed->link);
	free(listed->records);
	free(listed->seen);
	free(listed->id);
	free(listed->cursor);
	free(listed->cwd);
	free(listed);
}

static void look_free(struct look *look)
{
	list_remove(&look->link);
	if (look->parcel && look->relay) {
		look->relay->held_bytes -= parcel_size(look->parcel);
	}
	parcel_destroy(look->parcel);
	listing_records_destroy(look->records);
	free(look->id);
	free(look->state_folder);
	free(look->profile);
	free(look->cwd);
	free(look);
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
	if (!record->reference || record->session_count == 0 || has_ended(record) ||
		strcmp(record->profile, look->profile) != 0 ||
		strcmp(record->backend, look->backend) != 0 ||
		(look->cwd && strcmp(record->local_root, look->cwd) != 0) ||
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
	if (look->cwd) {
		char *real = real_path(look->cwd);
		free(look->cwd);
		look->cwd = real;
	}
	look->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (look->folder_fd >= 0 && !record_visit(look->folder_fd, look_at, look, &err)) {
		log_warning("session/list: %s", err.text);
	}
	fd_close(&look->folder_fd);
}

/* ---- on the loop ---- */

static void pass(struct look *look)
{
	struct relay *relay = look->relay;
	struct call call;
	look->records->id = mem_strdup(look->id);
	list_append(&relay->listings, &look->records->link);
	look->records = NULL;
	struct splice outer = relay_edits_begin(relay);
	if (relay_open_parcel(look->parcel, &call)) {
		call.was_looked_up = true;
		bool is_taken = relay_on_editor_call(relay, &call);
		(void)is_taken; // a request always is
	}
	relay_edits_end(relay, outer);
	look_free(look);
}

static void on_done(struct pool_job *job)
{
	struct look *look = CONTAINER_OF(job, struct look, job);
	if (look->relay) {
		pass(look);
	} else {
		look_free(look);
	}
}

static void leave(struct look *look)
{
	struct pool *pool = look->relay->config.pool;
	list_remove(&look->link);
	look->relay->held_bytes -= parcel_size(look->parcel);
	look->relay = NULL;
	if (pool_cancel(pool, &look->job)) {
		look_free(look);
	}
}

static struct look *look_create(struct relay *relay, const struct call *call)
{
	char cwd[FILE_PATH_MAX];
	struct look *look = mem_alloc_zero(sizeof(*look));
	look->job = (struct pool_job){.lane = POOL_LANE_WORK, .run = run, .done = on_done};
	look->relay = relay;
	look->id = mem_strndup(call->message.id);
	look->state_folder = mem_strdup(relay->config.state_folder);
	look->profile = mem_strdup(relay->config.profile->name);
	look->backend = backend_name(relay->config.profile->backend);
	look->folder_fd = -1;
	struct span filter = message_place(&call->message, PLACE_CWD);
	look->records = mem_alloc_zero(sizeof(*look->records));
	list_init(&look->records->link);
	look->records->cwd = filter.len > 0 ? mem_strndup(filter) : NULL;
	if (message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd))) {
		look->cwd = mem_strdup(cwd);
	}
	list_append(&relay->list_looks, &look->link);
	return look;
}

static bool may_wait(const struct relay *relay, const struct call *call, struct error *err)
{
	size_t count = 0;
	LIST_FOR_EACH(look, &relay->list_looks, struct look, link) {
		count++;
	}
	if (count < LISTING_LOOKS_MAX &&
		relay->held_bytes + call->frame->bytes.len <= RELAY_HELD_MAX) {
		return true;
	}
	return error_set_reason(err, ERROR_LIMIT, "RESOURCE_LIMIT_EXCEEDED",
		"session/list: %zu of them wait already; try again once they were answered", count);
}

static bool start_look(struct relay *relay, const struct call *call, struct error *err)
{
	if (!may_wait(relay, call, err)) {
		return false;
	}
	struct look *look = look_create(relay, call);
	if (!pool_submit(relay->config.pool, &look->job, err)) {
		look_free(look);
		return false;
	}
	look->parcel = parcel_create(call->from, call->frame, relay->places);
	relay->held_bytes += parcel_size(look->parcel);
	return true;
}

/* ---- which list a page is of ---- */

/* NULL where it is no text, or too much of it. `raw` is a JSON value. */
static char *read_cursor(struct span raw)
{
	struct buf text;
	buf_init(&text, LISTING_CURSOR_MAX);
	bool ok = raw.len > 0 && raw.data[0] == '"' && json_decode_string(raw, &text, NULL);
	char *cursor = ok ? mem_strndup(buf_span(&text)) : NULL;
	buf_finish(&text);
	return cursor;
}

/* Agents may give the same cursor to lists of two directories. */
static struct listing_records *find_open(struct relay *relay, const char *cursor, struct span cwd)
{
	struct listing_records *found = NULL;
	LIST_FOR_EACH(listed, &relay->listings, struct listing_records, link) {
		if (!listed->cursor || strcmp(listed->cursor, cursor) != 0) {
			continue;
		}
		if (span_equals(span_of(listed->cwd ? listed->cwd : ""), cwd)) {
			return listed;
		}
		found = cwd.len == 0 && !found ? listed : found; // not said again
	}
	return found;
}

/* A further page is asked for. */
static void go_on(struct relay *relay, const struct call *call)
{
	char *cursor = read_cursor(message_place(&call->message, PLACE_CURSOR));
	struct span cwd = message_place(&call->message, PLACE_CWD);
	struct listing_records *listed = cursor ? find_open(relay, cursor, cwd) : NULL;
	if (listed) {
		free(listed->cursor);
		listed->cursor = NULL;
		listed->id = mem_strndup(call->message.id);
	}
	free(cursor);
}

struct listing_records *listing_records_take(struct relay *relay, struct span id)
{
	LIST_FOR_EACH(listed, &relay->listings, struct listing_records, link) {
		if (listed->id && span_equals(span_of(listed->id), id)) {
			list_remove(&listed->link);
			free(listed->id);
			listed->id = NULL;
			return listed;
		}
	}
	return NULL;
}

void listing_records_drop(struct relay *relay, struct span id)
{
	listing_records_destroy(listing_records_take(relay, id));
}

static void drop_oldest(struct relay *relay)
{
	struct listing_records *oldest = NULL;
	size_t count = 0;
	LIST_FOR_EACH(listed, &relay->listings, struct listing_records, link) {
		oldest = listed->cursor && !oldest ? listed : oldest;
		count += listed->cursor != NULL;
	}
	if (count > LISTING_OPEN_MAX) {
		listing_records_destroy(oldest);
	}
}

void listing_records_await(struct relay *relay, struct listing_records *listed, struct span cursor)
{
	listed->cursor = read_cursor(cursor);
	if (!listed->cursor) {
		listing_records_destroy(listed);
		return;
	}
	list_append(&relay->listings, &listed->link);
	drop_oldest(relay);
}

bool listing_records_hold(struct relay *relay, const struct call *call)
{
	struct error err;
	struct span cursor = message_place(&call->message, PLACE_CURSOR);
	if (call->was_looked_up || call->was_parked || !relay->config.state_folder ||
		!relay->config.pool || (!relay->offers_load && !relay->offers_resume) ||
		strcmp(call->message.method, "session/list") != 0) {
		return false;
	}
	if (cursor.len > 0 && !span_is(cursor, "null")) {
		go_on(relay, call);
		return false;
	}
	if (!start_look(relay, call, &err)) {
		relay_fail(relay, call->message.id,
			&(struct failure){failure_code_of(&err), "relay", err.text, {NULL, 0}});
	}
	return true;
}

/* ---- a page ---- */

/* False where it was there. */
static bool note(struct listing_records *listed, const char *id)
{
	uint64_t hash = hash_text(HASH_START, id);
	for (size_t i = 0; i < listed->seen_count; i++) {
		if (listed->seen[i] == hash) {
			return false;
		}
	}
	listed->is_full = listed->is_full || listed->seen_count >= SEEN_MAX;
	if (!listed->is_full) {
		listed->seen =
			mem_realloc(listed->seen, (listed->seen_count + 1) * sizeof(*listed->seen));
		listed->seen[listed->seen_count++] = hash;
	}
	return true;
}

static void note_page(struct listing_records *listed, const struct call *page)
{
	const struct json_check *check = page->message.check;
	for (size_t i = 0; i < json_check_hit_count(check); i++) {
		const struct json_hit *hit = &json_check_hits(check)[i];
		char id[MESSAGE_SESSION_ID_MAX + 1];
		if (hit->place == PLACE_LISTED_SESSION_ID &&
			message_hit_string(&page->message, hit, id, sizeof(id))) {
			note(listed, id);
		}
	}
}

/* An agent that runs in the very sandbox has listed what it knows. */
static bool is_listed_by_its_agent(struct relay *relay, const struct record *record)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		struct sandbox *sandbox = agent_sandbox(peer->agent);
		const char *reference = sandbox ? sandbox_reference(sandbox) : NULL;
		if (reference && strcmp(reference, record->reference) == 0) {
			return true;
		}
	}
	return false;
}

/* ACP, SessionInfo. */
static bool write_session(
	struct buf *out, const struct record *record, const char *id, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_key(&writer, "sessionId");
	json_write_text(&writer, id);
	json_write_key(&writer, "cwd");
	json_write_text(&writer, record->local_root);
	json_write_key(&writer, "updatedAt");
	json_write_text(&writer, record->updated);
	json_write_key(&writer, "_meta");
	json_write_object(&writer);
	json_write_key(&writer, "broker");
	json_write_object(&writer);
	json_write_key(&writer, "record");
	json_write_text(&writer, record->id);
	json_write_key(&writer, "state");
	json_write_text(&writer, record_state_name(record->state));
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	return json_write_end(&writer, err);
}

static bool write_missing(struct relay *relay, struct listing_records *listed, struct buf *out,
	bool is_first, struct error *err)
{
	size_t added = 0;
	for (size_t i = 0; i < listed->count; i++) {
		const struct record *record = &listed->records[i];
		bool is_known = is_listed_by_its_agent(relay, record);
		for (size_t j = 0; !is_known && j < record->session_count; j++) {
			const char *id = record->sessions[j];
			if (added == ADDED_MAX || session_find(&relay->sessions, id) ||
				!note(listed, id)) {
				continue;
			}
			bool ok =
				(is_first && added == 0) || buf_append(out, SPAN_LITERAL(","), err);
			if (!ok || !write_session(out, record, id, err)) {
				return false;
			}
			added++;
		}
	}
	return true;
}

bool listing_records_add(struct relay *relay, struct listing_records *listed,
	const struct call *page, bool is_last, struct error *err)
{
	const struct json_hit *hit = message_hit(&page->message, PLACE_LISTED);
	struct span sessions = message_place(&page->message, PLACE_LISTED);
	struct buf text;
	if (!listed || sessions.len == 0 || sessions.data[0] != '[') {
		return true;
	}
	note_page(listed, page);
	if (!is_last || listed->is_full) {
		return true;
	}
	size_t blanks = strspn(sessions.data + 1, " \t\r\n");
	bool is_empty = sessions.data[1 + blanks] == ']';
	buf_init(&text, SPLICE_BYTES_MAX);
	bool ok = write_missing(relay, listed, &text, is_empty, err) &&
	          (text.len == 0 || splice_add(&relay->splice, hit->end - 1, hit->end - 1,
					    buf_span(&text), err));
	buf_finish(&text);
	return ok;
}

/* ---- the end ---- */

void listing_records_end(struct relay *relay)
{
	LIST_FOR_EACH(look, &relay->list_looks, struct look, link) {
		relay_fail(relay, span_of(look->id),
			&(struct failure){
				"SHUTTING_DOWN", "stop", "the broker is ending", {NULL, 0}});
		leave(look);
	}
}

void listing_records_finish(struct relay *relay)
{
	LIST_FOR_EACH(look, &relay->list_looks, struct look, link) {
		leave(look);
	}
	LIST_FOR_EACH(listed, &relay->listings, struct listing_records, link) {
		listing_records_destroy(listed);
	}
}
