/* SPDX-License-Identifier: MIT */
#include "broker/relay/listing_records_impl.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json_doc.h"
#include "broker/session/root_names.h"

enum { SEEN_MAX = 16384, ADDED_MAX = 1024 }; // sessions of one list

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
	free(listed->name);
	free(listed->real);
	free(listed);
}

/* ---- finding the list of a page ---- */

/* NULL if it is not a string, or too long. `raw` is a JSON value. */
static char *read_cursor(struct span raw)
{
	struct buf text;
	buf_init(&text, LISTING_CURSOR_MAX);
	bool ok = raw.len > 0 && raw.data[0] == '"' && json_decode_string(raw, &text, NULL);
	char *cursor = ok ? mem_strndup(buf_span(&text)) : NULL;
	buf_finish(&text);
	return cursor;
}

/* Agents may give the same cursor to the lists of two directories. */
static struct listing_records *find_open(struct relay *relay, const char *cursor, struct span cwd)
{
	struct listing_records *found = NULL;
	LIST_FOR_EACH(listed, listings_of(relay), struct listing_records, link) {
		if (!listed->cursor || strcmp(listed->cursor, cursor) != 0) {
			continue;
		}
		if (span_equals(span_of(listed->cwd ? listed->cwd : ""), cwd)) {
			return listed;
		}
		found = cwd.len == 0 && !found ? listed
		                               : found; // the request need not repeat the cwd
	}
	return found;
}

void listing_records_go_on(struct relay *relay, const struct call *call)
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
	LIST_FOR_EACH(listed, listings_of(relay), struct listing_records, link) {
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
	LIST_FOR_EACH(listed, listings_of(relay), struct listing_records, link) {
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
	list_append(listings_of(relay), &listed->link);
	drop_oldest(relay);
}

/* ---- a page ---- */

/* False if it was already noted. */
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

/* An agent that runs in the record's sandbox has itself listed what it knows. */
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

void listing_records_name(const struct listing_records *listed, struct peer *peer)
{
	for (size_t i = 0; listed && i < listed->count; i++) {
		const struct record *record = &listed->records[i];
		if (record->runtime_root && relay_is_per_session(peer->relay)) {
			relay_know_root(peer, record->local_root, record->runtime_root);
		}
	}
	if (listed && listed->name) {
		relay_know_as(peer, listed->name, listed->real);
	}
}

/* ACP, SessionInfo. */
static bool write_session(struct buf *out, const struct record *record, const char *name,
	const char *id, struct error *err)
{
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "sessionId", id);
	json_write_member(&writer, "cwd", name ? name : record->local_root);
	json_write_member(&writer, "updatedAt", record->updated);
	json_write_key(&writer, "_meta");
	json_write_object(&writer);
	json_write_key(&writer, "broker");
	json_write_object(&writer);
	json_write_member(&writer, "record", record->id);
	json_write_member(&writer, "state", record_state_name(record->state));
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
			if (!ok || !write_session(out, record, listed->name, id, err)) {
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
	          (text.len == 0 || splice_add(page->edits, hit->end - 1, hit->end - 1,
					    buf_span(&text), err));
	buf_finish(&text);
	return ok;
}
