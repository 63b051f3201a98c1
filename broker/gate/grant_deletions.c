/* SPDX-License-Identifier: MIT */
#include "broker/gate/grant_deletions.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/markdown.h"
#include "broker/gate/grant_answer.h"
#include "broker/gate/grant_audit.h"
#include "broker/gate/grant_question.h"
#include "broker/session/question.h"
#include "broker/session/unanswered.h"

enum { CONTENT_MAX = 64 * 1024 }; // bytes of the text about the files

struct wording {
	const char *rule;        // why the user is asked; NULL: the policy's line
	const char *where, *end; // the title before and after the directory
	const char *explanation;
	const char *options; // JSON
};

static const struct wording agents = {
	.where = "",
	.end = ", because the agent deleted them",
	.explanation =
		"The agent has deleted them in its copy. A yes deletes them here too; the last "
		"checkpoint has them all. A no restores them in the agent's copy.\n",
	.options = "[{\"optionId\":\"delete\",\"name\":\"Delete them here too\","
		   "\"kind\":\"allow_once\"},"
		   "{\"optionId\":\"give-back\",\"name\":\"Give them back to the agent\","
		   "\"kind\":\"reject_once\"}]",
};

static const struct wording users = {
	.rule = "files that are gone",
	.where = "the sandbox, because they are gone from ",
	.end = "",
	.explanation =
		"They are gone here. If you did not delete them (a file system is not mounted, "
		"perhaps), say no: the agent keeps its files. A yes deletes them in the "
		"sandbox too.\n",
	.options = "[{\"optionId\":\"delete\",\"name\":\"Delete them there too\","
		   "\"kind\":\"allow_once\"},"
		   "{\"optionId\":\"give-back\",\"name\":\"Leave them in the sandbox\","
		   "\"kind\":\"reject_once\"}]",
};

static const struct wording replaced = {
	.rule = "another folder",
	.explanation = "This is another folder than at the last sync: its file system is not "
		       "mounted, or the folder was created again. A yes syncs the sandbox with it. "
		       "A no changes nothing, and the prompt is not sent.\n",
	.options = "[{\"optionId\":\"sync\",\"name\":\"Sync with this folder\","
		   "\"kind\":\"allow_once\"},"
		   "{\"optionId\":\"refuse\",\"name\":\"Change nothing\","
		   "\"kind\":\"reject_once\"}]",
};

static const struct wording *wording_of(const struct deletions *deletions)
{
	return deletions->is_replaced ? &replaced : deletions->is_users ? &users : &agents;
}

/* ---- the question ---- */

/* Appends the whole path, or nothing. */
static bool append_path(struct buf *text, const char *path)
{
	struct buf shown;
	buf_init(&shown, SIZE_MAX / 2);
	markdown_code(&shown, span_of(path), FILE_PATH_MAX);
	bool fits = text->len + shown.len + 3 < CONTENT_MAX &&
	            buf_append(text, SPAN_LITERAL("\n- "), NULL) &&
	            buf_append(text, buf_span(&shown), NULL);
	buf_finish(&shown);
	return fits;
}

/* Names some of the files; a text that is too long is cut at its end. */
static void write_files(struct json_writer *writer, const struct deletions *deletions)
{
	struct buf text;
	size_t named = 0;
	buf_init(&text, CONTENT_MAX);
	bool fits = buf_append_format(&text, NULL, "%s", wording_of(deletions)->explanation);
	for (; fits && deletions->named && deletions->named[named]; named++) {
		fits = append_path(&text, deletions->named[named]);
	}
	if (fits && deletions->count > named) {
		fits = buf_append_format(&text, NULL, "\n- and %zu more", deletions->count - named);
	}
	question_write_content(writer, buf_span(&text));
	buf_finish(&text);
}

static bool write_question(struct request *request, const struct question_reason *reason,
	const char *local_root, const struct deletions *deletions, struct error *err)
{
	struct json_writer writer;
	struct buf what;
	buf_init(&what, SIZE_MAX / 2);
	const struct wording *wording = wording_of(deletions);
	bool ok =
		deletions->is_replaced
			? buf_append(&what, SPAN_LITERAL("Sync with the folder that is now "), NULL)
			: buf_append_format(&what, NULL, "Delete %zu of the %zu files in %s",
				  deletions->count, deletions->total, wording->where);
	markdown_code(&what, span_of(local_root), FILE_PATH_MAX);
	ok = ok && (!wording->end || buf_append(&what, span_of(wording->end), NULL));
	question_begin(request, &writer);
	json_write_member(&writer, "sessionId", request->session_id);
	json_write_key(&writer, "toolCall");
	json_write_object(&writer);
	question_write_head(&writer, request, reason, "delete", buf_span(&what));
	write_files(&writer, deletions);
	json_write_object_end(&writer);
	buf_finish(&what);
	return question_end(request, &writer, err) && ok;
}

/* ---- the answer ---- */

static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct grant_answer decided = grant_settle(relay, request, answer, failure);
	bool is_yes = grant_decision_allows(decided.decision);
	question_close(relay, request, is_yes);
	keeper_decide(request->peer->keeper, is_yes);
}

/* ---- asking ---- */

static bool ask(struct peer *peer, const struct session *session, const struct subject *subject,
	const struct grant_decision *decision, const struct deletions *deletions)
{
	const char *rule = wording_of(deletions)->rule;
	const struct question_reason reason =
		rule ? (struct question_reason){.rule = rule} : grant_question_reason(decision);
	struct relay *relay = peer->relay;
	struct error err;
	struct request *request = request_create(peer, NULL);
	request->on_answer = on_answer;
	struct question *question = question_of(request);
	question->subject = subject_copy(subject);
	question->options = wording_of(deletions)->options;
	request->session_id = mem_strdup(session->id);
	if (!pending_add(&relay->asked_editor, &request->pending, (struct span){NULL, 0}, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"session %s: cannot ask about deletions, so they are not applied: %s",
			session->id, err.text);
		request_destroy(request);
		return false;
	}
	if (!write_question(request, &reason, subject->paths[0], deletions, &err)) {
		log_failure(LOG_LEVEL_WARNING, &err,
			"session %s: cannot ask about deletions, so they are not applied: %s",
			session->id, err.text);
		pending_remove(&relay->asked_editor, &request->pending);
		request_destroy(request);
		return false;
	}
	grant_note_asked(request, subject, reason.rule);
	relay_send_editor(relay, buf_span(&relay->scratch));
	relay_watch_question(request);
	return true;
}

/* A session in which the user can be asked; NULL if there is none. */
static struct session *find_session(struct peer *peer, const struct keeper_event *event)
{
	struct relay *relay = peer->relay;
	bool is_over = relay->is_ending || relay->editor_has_ended || peer->is_down;
	return is_over || !event->session ? NULL : session_find(&relay->sessions, event->session);
}

void grant_deletions_ask(
	struct peer *peer, const struct keeper_event *event, const struct deletions *deletions)
{
	struct relay *relay = peer->relay;
	struct session *session = find_session(peer, event);
	char *paths[] = {(char *)event->local_root, NULL};
	char kind[] = "delete";
	struct subject subject = {
		.operation = POLICY_GRANT, .paths = paths, .is_resolved = true, .kind = kind};
	if (!session) {
		keeper_decide(peer->keeper, false);
		return;
	}
	struct grant_decision decision = {.verdict = {.decision = POLICY_PENDING}};
	if (!deletions->is_users) { // policy is about the agent's deletions, not the user's
		decision = grant_decide(relay->config.profile->policy, NULL, &subject,
			(const char *const *)session->roots);
	}
	if (decision.verdict.decision != POLICY_PENDING) {
		grant_audit(relay, session, &subject, &decision);
		keeper_decide(peer->keeper, grant_decision_allows(decision.verdict.decision));
	} else if (!ask(peer, session, &subject, &decision, deletions)) {
		keeper_decide(peer->keeper, false);
	}
}

static const struct error cancelled = {.code = ERROR_DENIED,
	.reason = "PERMISSION_DENIED",
	.stage = "session",
	.text = "the session was cancelled before anyone answered"};

static struct request *find_question(struct relay *relay, const char *session_id)
{
	LIST_FOR_EACH(pending, &relay->asked_editor.order, struct pending, order_link) {
		struct request *request = CONTAINER_OF(pending, struct request, pending);
		if (request->on_answer == on_answer &&
			strcmp(request->session_id, session_id) == 0) {
			return request;
		}
	}
	return NULL;
}

void grant_deletions_cancel(struct relay *relay, const char *session_id)
{
	struct request *request;
	while ((request = find_question(relay, session_id))) {
		pending_remove(&relay->asked_editor, &request->pending);
		relay_withdraw_question(relay, request);
		on_answer(relay, request, NULL, &cancelled);
		request_destroy(request);
	}
}

void grant_deletions_drop(struct peer *peer)
{
	if (peer->keeper) {
		keeper_decide(peer->keeper, false);
	}
}
