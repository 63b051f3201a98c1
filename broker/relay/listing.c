/* SPDX-License-Identifier: MIT */
#include "broker/relay/listing.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "broker/relay/listing_records.h"
#include "broker/session/answer.h"

static const char prefix[] = "\"acp-broker:";

const char listing_empty[] = "{\"sessions\":[]}";

/* A part of a session/list request. */
struct listing {
	bool has_cursor;                // it has a cursor, which names the agent
	bool has_listed;                // an earlier agent has given a list
	struct listing_records *listed; // owned; sessions that the broker adds; may be NULL
};

static void finish(void *part, void *request)
{
	struct listing *listing = part;
	listing_records_destroy(listing->listed);
}

static const struct part_type type = {.size = sizeof(struct listing), .finish = finish};

static struct listing *listing_of(struct request *request)
{
	return parts_get(&request->parts, &type);
}

/* ---- cursors ---- */

struct cursor {
	int number; // of the agent
	bool has_listed;
	struct span own; // the agent's own cursor as JSON spells it, without quotes
};

/* False if it is not one of ours. `raw` is a JSON value. */
static bool read_cursor(struct span raw, struct cursor *out)
{
	size_t at = sizeof(prefix) - 1;
	int number = 0;
	if (!span_starts_with(raw, SPAN_LITERAL("\"acp-broker:"))) {
		return false;
	}
	for (; raw.data[at] >= '0' && raw.data[at] <= '9' && number <= 9999; at++) {
		number = number * 10 + (raw.data[at] - '0');
	}
	struct span rest = {raw.data + at, raw.len - at};
	bool has_listed = span_starts_with(rest, SPAN_LITERAL(":1:"));
	if (!has_listed && !span_starts_with(rest, SPAN_LITERAL(":0:"))) {
		return false;
	}
	*out = (struct cursor){number, has_listed, {rest.data + 3, rest.len - 4}};
	return true;
}

static bool write_cursor(struct buf *out, const struct cursor *cursor, struct error *err)
{
	return buf_append_format(
		       out, err, "%s%d:%d:", prefix, cursor->number, cursor->has_listed ? 1 : 0) &&
	       buf_append(out, cursor->own, err) && buf_append(out, SPAN_LITERAL("\""), err);
}

/* ---- choosing the agent ---- */

static struct peer *first_from(struct relay *relay, int number)
{
	LIST_FOR_EACH(peer, &relay->peers, struct peer, link) {
		if (!peer->is_down && !peer_reserved_for(peer) && peer->number >= number) {
			return peer;
		}
	}
	return NULL;
}

struct peer *listing_peer(struct relay *relay, const struct call *call, bool *out_is_over)
{
	struct cursor cursor;
	bool is_ours = read_cursor(message_place(&call->message, PLACE_CURSOR), &cursor);
	struct peer *peer =
		is_ours ? first_from(relay, cursor.number) : relay->ops->current_peer(relay);
	*out_is_over = is_ours && !peer;
	return peer;
}

/* ---- the request ---- */

static void on_due(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct request *request = CONTAINER_OF(timer, struct request, due);
	struct relay *relay = request->peer->relay;
	struct error err;
	failure_set(&err, "TIMEOUT_EXCEEDED", "relay",
		"%s did not answer session/list within %d ms (start-timeout)", request->peer->hop,
		relay->config.profile->start_timeout_ms);
	pending_remove(&request->peer->asked, &request->pending);
	relay_fail_request(relay, request, &err);
}

/* An agent that is stuck delays the others' sessions no longer than this. */
static void watch(struct relay *relay, struct request *request)
{
	int ms = relay->config.profile->start_timeout_ms;
	if (ms > 0 && first_from(relay, request->peer->number + 1)) {
		ev_timer_init(&request->due, on_due, ms / 1000.0, 0.0);
		ev_timer_start(relay->config.loop, &request->due);
	}
}

bool listing_on_send(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_CURSOR);
	struct cursor cursor;
	watch(relay, request);
	struct listing *listing = listing_of(request);
	listing->listed = listing_records_take(relay, call->message.id);
	listing_records_name(listing->listed, request->peer);
	if (!read_cursor(message_place(&call->message, PLACE_CURSOR), &cursor)) {
		return true;
	}
	listing->has_cursor = true;
	listing->has_listed = cursor.has_listed;
	if (cursor.own.len == 0 || cursor.number != request->peer->number) {
		return splice_add(call->edits, hit->start, hit->end, SPAN_LITERAL("null"), err);
	}
	size_t start = (size_t)(cursor.own.data - call->message.text.data);
	return splice_add(call->edits, hit->start + 1, start, (struct span){"", 0}, err);
}

/* ---- the agent's answer ---- */

/* The editor knows some sessions by other ids than the agent. */
static bool edit_ids(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	const struct json_check *check = call->message.check;
	for (size_t i = 0; relay->sessions.aliases > 0 && i < json_check_hit_count(check); i++) {
		const struct json_hit *hit = &json_check_hits(check)[i];
		char id[MESSAGE_SESSION_ID_MAX + 1];
		if (hit->place != PLACE_LISTED_SESSION_ID ||
			!message_hit_string(&call->message, hit, id, sizeof(id))) {
			continue;
		}
		const struct session *session =
			session_find_agent(&relay->sessions, request->peer, id);
		struct json_writer writer;
		if (!session || !session_has_alias(session)) {
			continue;
		}
		buf_clear(&relay->scratch);
		json_write_begin(&writer, &relay->scratch);
		json_write_text(&writer, session->id);
		if (!json_write_end(&writer, err) || !splice_add(call->edits, hit->start, hit->end,
							     buf_span(&relay->scratch), err)) {
			return false;
		}
	}
	return true;
}

/* Finds where the next page is; false if there is none. */
static bool find_next(
	struct relay *relay, struct request *request, struct span own, struct cursor *out)
{
	const struct peer *next = first_from(relay, request->peer->number + 1);
	if (own.len > 2 && own.data[0] == '"') {
		*out = (struct cursor){request->peer->number, true, {own.data + 1, own.len - 2}};
		return next || listing_of(request)->has_cursor;
	}
	*out = (struct cursor){next ? next->number : 0, true, {"", 0}};
	return next != NULL;
}

/* Whether neither this agent nor another one has more. */
static bool is_last(struct relay *relay, const struct request *request, const struct call *call)
{
	struct span own = message_place(&call->message, PLACE_NEXT_CURSOR);
	bool has_more = own.len > 2 && own.data[0] == '"';
	return !has_more && !first_from(relay, request->peer->number + 1);
}

/* The editor gets a cursor for the next page: the broker's additions continue there. */
static void await_page(struct relay *relay, struct request *request, struct span cursor)
{
	struct listing *listing = listing_of(request);
	if (listing->listed) {
		listing_records_await(relay, listing->listed, cursor);
		listing->listed = NULL;
	}
}

bool listing_on_result(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	struct cursor next;
	struct span own = message_place(&call->message, PLACE_NEXT_CURSOR);
	struct buf text;
	struct span result = message_place(&call->message, PLACE_RESULT);
	const struct json_hit *hit = message_hit(&call->message, PLACE_NEXT_CURSOR);
	if (!edit_ids(relay, request, call, err) ||
		!listing_records_add(relay, listing_of(request)->listed, call,
			is_last(relay, request, call), err)) {
		return false;
	}
	if (result.len == 0 || result.data[0] != '{' || !find_next(relay, request, own, &next)) {
		await_page(relay, request, own);
		return true;
	}
	buf_init(&text, SPLICE_BYTES_MAX);
	bool ok = write_cursor(&text, &next, err);
	if (ok && hit) {
		ok = splice_add(call->edits, hit->start, hit->end, buf_span(&text), err);
	} else if (ok) {
		ok = relay_insert_member(relay, call, result, "nextCursor", buf_span(&text), err);
	}
	if (ok) {
		await_page(relay, request, buf_span(&text));
	}
	buf_finish(&text);
	return ok;
}

static bool was_cancelled(struct span error)
{
	struct json_doc *doc = error.len > 0 ? json_doc_parse_unchecked(error, NULL) : NULL;
	bool was = doc && json_int(doc, json_get(doc, 0, "code"), 0) == REQUEST_CANCELLED;
	json_doc_destroy(doc);
	return was;
}

/* Answers with an empty page whose cursor leads to the next agent. */
static bool answer_next(struct relay *relay, struct request *request, const struct peer *next)
{
	struct cursor cursor = {next->number, listing_of(request)->has_listed, {"", 0}};
	struct buf text;
	struct buf page;
	buf_init(&text, SIZE_MAX / 2);
	buf_init(&page, SIZE_MAX / 2);
	bool ok = write_cursor(&text, &cursor, NULL) &&
	          buf_append(&page, SPAN_LITERAL("{\"sessions\":[],\"nextCursor\":"), NULL) &&
	          buf_append(&page, buf_span(&text), NULL) &&
	          buf_append(&page, SPAN_LITERAL("}"), NULL);
	if (ok) {
		await_page(relay, request, buf_span(&text));
		relay_answer(relay, pending_origin(&request->pending), buf_span(&page));
	}
	buf_finish(&page);
	buf_finish(&text);
	return ok;
}

bool listing_on_error(struct relay *relay, struct request *request, struct span error)
{
	const struct peer *next = first_from(relay, request->peer->number + 1);
	if ((!next && !listing_of(request)->has_listed) || was_cancelled(error)) {
		return false;
	}
	log_warning("%s: it gives no list of its sessions; the other agents' lists follow",
		request->peer->hop);
	if (next) {
		return answer_next(relay, request, next);
	}
	relay_answer(relay, pending_origin(&request->pending), span_of(listing_empty));
	return true;
}
