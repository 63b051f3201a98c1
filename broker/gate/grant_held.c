/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_held.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/markdown.h"
#include "base/real_path.h"
#include "base/utf8.h"
#include "base/words.h"
#include "broker/gate/grant_answer.h"
#include "broker/gate/grant_audit.h"
#include "broker/session/in_flight.h"
#include "broker/session/notice.h"
#include "broker/session/question.h"
#include "broker/session/unanswered.h"
#include "sync/held.h"
#include "sync/id.h"

enum {
	NAMED_MAX = 3, // files in a title
};

struct held_question {
	char *root;   // owned; the directory on this machine
	char **paths; // owned, NULL-terminated; relative to it
	git_oid tree; // the tree with the changes
};

static const char options[] =
	"[{\"optionId\":\"bring\",\"name\":\"Bring it here\",\"kind\":\"allow_once\"},"
	"{\"optionId\":\"bring-always\",\"name\":\"Always, for this path in this workspace\","
	"\"kind\":\"allow_always\"},"
	"{\"optionId\":\"leave\",\"name\":\"Leave it in the sandbox\",\"kind\":\"reject_once\"}]";

static const struct question_reason reason = {.rule = "guard-paths"};

static void finish(void *part, void *request)
{
	struct held_question *held = part;
	free(held->root);
	words_free(held->paths);
}

static const struct part_type type = {.size = sizeof(struct held_question), .finish = finish};

static struct held_question *held_of(const struct request *request)
{
	return parts_find(&request->parts, &type);
}

static struct held_question *make_held(
	struct request *request, const char *root, const struct sync_result *result)
{
	struct held_question *question = parts_get(&request->parts, &type);
	question->root = mem_strdup(root);
	question->tree = result->held_tree;
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (held->state == HELD_ASKED) {
			words_append(&question->paths, held->path);
		}
	}
	return question;
}

/* ---- the question ---- */

static bool is_shown(const struct held_change *held)
{
	return held->state == HELD_ASKED && held->new_text &&
	       (held->old_text || held->local.mode == ENTRY_NONE);
}

static void write_diff(struct json_writer *writer, const char *root, const struct held_change *held)
{
	char *path = path_join(root, held->path);
	json_write_object(writer);
	json_write_member(writer, "type", "diff");
	json_write_member(writer, "path", path);
	json_write_member(writer, "oldText", held->old_text); // NULL becomes null: no old text
	json_write_member(writer, "newText", held->new_text);
	json_write_object_end(writer);
	free(path);
}

/* Whether the text has characters that a reader does not see. */
static bool has_hidden(const char *text)
{
	struct span rest = span_of(text);
	while (rest.len > 0) {
		size_t len = utf8_char_length(rest);
		bool is_break = *rest.data == '\n' || *rest.data == '\t' ||
		                (*rest.data == '\r' && rest.len > 1 && rest.data[1] == '\n');
		if (len == 0 || (!is_break && utf8_is_hidden(rest))) {
			return true;
		}
		rest = (struct span){rest.data + len, rest.len - len};
	}
	return false;
}

/* Appends the path, quoted, and what a diff would not show. */
static void append_line(struct buf *out, const struct held_change *held)
{
	bool was_executable = store_entry_is_executable(&held->local);
	bool is_executable = store_entry_is_executable(&held->made);
	bool is_gone = held->made.mode == ENTRY_NONE;
	const char *remarks[] = {
		is_gone          ? "would be deleted"
		: is_shown(held) ? NULL
				 : "has no diff here: it is binary, or the text is too long",
		is_executable == was_executable || is_gone ? NULL
		: is_executable                            ? "would be executable"
							   : "would no longer be executable",
		held->is_whole && !is_gone ? "would replace your folder and everything in it"
					   : NULL,
		is_shown(held) && has_hidden(held->new_text) ? "has characters that are not shown"
							     : NULL,
	};
	const char *before = " ";
	bool ok = buf_append(out, SPAN_LITERAL("\n- "), NULL);
	markdown_code(out, span_of(held->path), FILE_PATH_MAX);
	for (size_t i = 0; i < ARRAY_LENGTH(remarks); i++) {
		if (remarks[i]) {
			ok = ok && buf_append_format(out, NULL, "%s%s", before, remarks[i]);
			before = ", ";
		}
	}
}

/* Says what a yes does, and to which files. */
static void write_words(struct json_writer *writer, const struct sync_result *result, size_t count)
{
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	bool ok = buf_append_format(&text, NULL,
		"Your tools may run commands from such files. A yes brings the agent's version "
		"here, a no leaves it in the sandbox.");
	if (count < result->held_count) {
		ok = ok &&
		     buf_append_format(&text, NULL,
			     " %zu such files wait; this question is about %zu of them, and a "
			     "later sync asks about the others.",
			     result->held_count, count);
	}
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (held->state == HELD_ASKED) {
			append_line(&text, held);
		}
	}
	if (ok) {
		question_write_text(writer, buf_span(&text));
	}
	buf_finish(&text);
}

static void write_content(struct json_writer *writer, const struct held_question *question,
	const struct sync_result *result)
{
	const char *root = question->root;
	json_write_key(writer, "locations");
	json_write_array(writer);
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (is_shown(held)) {
			char *path = path_join(root, held->path);
			json_write_object(writer);
			json_write_member(writer, "path", path);
			json_write_object_end(writer);
			free(path);
		}
	}
	json_write_array_end(writer);
	json_write_key(writer, "content");
	json_write_array(writer);
	write_words(writer, result, words_count(question->paths));
	LIST_FOR_EACH(held, result->held, struct held_change, link) {
		if (is_shown(held)) {
			write_diff(writer, root, held);
		}
	}
	json_write_array_end(writer);
}

/* Appends "`.envrc`, `.mcp.json` and 2 more". */
static void append_names(struct buf *out, char *const *paths)
{
	size_t count = words_count(paths);
	bool ok = true;
	for (size_t i = 0; ok && i < count && i < NAMED_MAX; i++) {
		ok = i == 0 || buf_append(out, SPAN_LITERAL(", "), NULL);
		markdown_code(out, span_of(paths[i]), FILE_PATH_MAX);
	}
	if (ok && count > NAMED_MAX) {
		ok = buf_append_format(out, NULL, " and %zu more", count - NAMED_MAX);
	}
}

static bool write_question(
	struct request *request, const struct sync_result *result, struct error *err)
{
	struct json_writer writer;
	struct buf what;
	buf_init(&what, SIZE_MAX / 2);
	bool ok = buf_append(&what, SPAN_LITERAL("Bring here the agent's version of "), NULL);
	append_names(&what, held_of(request)->paths);
	question_begin(request, &writer);
	json_write_member(&writer, "sessionId", request->session_id);
	json_write_key(&writer, "toolCall");
	json_write_object(&writer);
	question_write_head(&writer, request, &reason, "edit", buf_span(&what));
	write_content(&writer, held_of(request), result);
	json_write_object_end(&writer);
	buf_finish(&what);
	return question_end(request, &writer, err) && ok;
}

/* ---- the answer ---- */

static void ignore_end(void *data, const struct error *err)
{
	(void)data; // the session was told of a failure
	(void)err;
}

/* A prompt in progress ends with a sync of its own. */
static void sync_now(struct peer *peer, const struct request *request)
{
	char under_way[IN_FLIGHT_TEXT_MAX];
	struct kept kept;
	for (size_t i = 0; keeper_at(peer->keeper, i, &kept); i++) {
		if (strcmp(kept.local_root, held_of(request)->root) == 0 &&
			!in_flight_describe(peer, IN_FLIGHT_PROMPTS, under_way)) {
			keeper_sync(peer->keeper, (char *[]){(char *)kept.runtime_root, NULL},
				&(struct sync_order){.reason = SYNC_REASON_TURN,
					.session = request->session_id,
					.name = "the files that you allowed",
					.deletions = SYNC_DELETIONS_ASK},
				ignore_end, NULL);
			return;
		}
	}
}

static void tell_left(struct relay *relay, const struct request *request)
{
	struct buf text;
	const struct session *session = session_find(&relay->sessions, request->session_id);
	if (!session || relay->editor_has_ended) {
		return;
	}
	buf_init(&text, SIZE_MAX / 2);
	append_names(&text, held_of(request)->paths);
	if (buf_append_format(
		    &text, NULL, ": the agent's version stays in the sandbox (guard-paths)") &&
		buf_append(&text, (struct span){"", 1}, NULL)) {
		notice_send(relay, session, text.data, false);
	}
	buf_finish(&text);
}

/* An unanswered question is not a no: the next sync asks again. */
static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct peer *peer = request->peer;
	struct grant_answer decided = grant_settle(relay, request, answer, failure);
	bool is_yes = grant_decision_allows(decided.decision);
	bool is_answer = !failure && !decided.is_cancelled;
	question_close(relay, request, is_yes);
	if (!peer->keeper || peer->is_down || keeper_is_closing(peer->keeper)) {
		return;
	}
	if (is_answer) {
		enum held_answer held = !is_yes                                   ? HELD_NO
		                        : decided.decision == POLICY_ALLOW_ALWAYS ? HELD_ALWAYS
		                                                                  : HELD_ONCE;
		keeper_answer_held(peer->keeper, held_of(request)->root, &held_of(request)->tree,
			held_of(request)->paths, held);
	}
	if (is_yes) {
		sync_now(peer, request);
	} else {
		tell_left(relay, request);
	}
}

/* ---- asking ---- */

static void withdraw(struct relay *relay, struct request *request)
{
	pending_remove(&relay->asked_editor, &request->pending);
	relay_withdraw_question(relay, request);
	question_close(relay, request, false);
	request_destroy(request);
}

/* The open question about a directory, or NULL. */
static struct request *find_open(const struct peer *peer, const char *root)
{
	LIST_FOR_EACH(pending, &peer->relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (held_of(request) && request->peer == peer &&
			strcmp(held_of(request)->root, root) == 0) {
			return request;
		}
	}
	return NULL;
}

/* The subject for policy: permission to edit these files. */
static struct subject *subject_of(const struct held_question *question)
{
	char kind[] = "edit";
	char **paths = NULL;
	for (char **path = question->paths; path && *path; path++) {
		char *whole = path_join(question->root, *path);
		words_append(&paths, whole);
		free(whole);
	}
	struct subject subject = {
		.operation = POLICY_GRANT, .paths = paths, .is_resolved = true, .kind = kind};
	struct subject *copy = subject_copy(&subject);
	words_free(paths);
	return copy;
}

static void ask(struct peer *peer, const struct session *session, struct request *request,
	const struct sync_result *result)
{
	struct relay *relay = peer->relay;
	struct error err;
	request->on_answer = on_answer;
	question_of(request)->options = options;
	request->session_id = mem_strdup(session->id);
	if (!pending_add(&relay->asked_editor, &request->pending, (struct span){NULL, 0}, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"session %s: cannot ask about the held files: %s", session->id, err.text);
		request_destroy(request);
		return;
	}
	if (!write_question(request, result, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"session %s: cannot ask about the held files: %s", session->id, err.text);
		pending_remove(&relay->asked_editor, &request->pending);
		request_destroy(request);
		return;
	}
	grant_note_asked(request, question_find(request)->subject, reason.rule);
	relay_send_editor(relay, buf_span(&relay->scratch));
	relay_watch_question(request);
}

/* Whether policy says no. If so, writes the audit log, and gives the keeper the answer no. */
static bool is_refused(
	struct peer *peer, const struct session *session, const struct request *request)
{
	struct relay *relay = peer->relay;
	struct grant_decision decision = grant_decide(relay->config.profile->policy, NULL,
		question_find(request)->subject, (const char *const *)session->roots);
	if (decision.verdict.decision == POLICY_PENDING ||
		grant_decision_allows(decision.verdict.decision)) {
		return false;
	}
	grant_audit(relay, session, question_find(request)->subject, &decision);
	keeper_answer_held(peer->keeper, held_of(request)->root, &held_of(request)->tree,
		held_of(request)->paths, HELD_NO);
	return true;
}

void grant_held_on_synced(
	struct peer *peer, const struct keeper_event *event, const struct sync_result *result)
{
	struct relay *relay = peer->relay;
	struct request *open = find_open(peer, event->local_root);
	bool is_over = relay->is_ending || relay->editor_has_ended || peer->is_down;
	if (open && result->held_count > 0 && id_equal(&held_of(open)->tree, &result->held_tree)) {
		return;
	}
	if (open) {
		withdraw(relay, open); // its changes no longer exist
	}
	const struct session *session =
		is_over || !event->session ? NULL : session_find(&relay->sessions, event->session);
	if (!session || result->held_count == 0 || result->is_held_answered) {
		return;
	}
	struct request *request = request_create(peer, NULL);
	request->is_beside = true;
	question_of(request)->subject = subject_of(make_held(request, event->local_root, result));
	if (is_refused(peer, session, request)) {
		request_destroy(request);
		return;
	}
	ask(peer, session, request, result);
}

static struct request *find_in_session(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (held_of(request) && strcmp(request->session_id, session_id) == 0) {
			return request;
		}
	}
	return NULL;
}

void grant_held_withdraw(struct relay *relay, const char *session_id)
{
	struct request *request;
	while ((request = find_in_session(relay, session_id))) {
		withdraw(relay, request);
	}
}
