/* SPDX-License-Identifier: MIT */
#include "broker/relay/handshake.h"
#include "broker/relay/restore_internal.h"
#include "broker/relay/opens.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"
#include "broker/session/notice.h"
#include "broker/session/session_update.h"

/* ---- the outcome ---- */

void restore_fail(struct restore *restore, const struct error *failure)
{
	struct relay *relay = restore->relay;
	desk_fail_all(&relay->desk, restore_pick(restore), failure);
	restore_destroy(restore);
}

/* Where the files are, whatever happens to the agent's memory; the caller owns it. */
static char *cwd_of(const struct session *session)
{
	struct json_doc *doc = session && session->opening
	                               ? json_doc_parse_unchecked(span_of(session->opening), NULL)
	                               : NULL;
	char *cwd = doc ? json_string(doc, json_get(doc, 0, "cwd")) : NULL;
	json_doc_destroy(doc);
	return cwd ? cwd : mem_strdup("the workspace");
}

/* The agent no longer knows the session. */
const struct error *restore_describe_loss(
	const struct session *session, const char *why, struct error *err)
{
	char *cwd = cwd_of(session);
	failure_set(err, "SESSION_LOST", "session",
		"session \"%s\" cannot be restored: its agent has ended and no longer "
		"remembers it: %s; the files are safe in %s: start a new session",
		session ? session->id : "", why, cwd);
	free(cwd);
	return err;
}

/* The editor does not see the answer, so updates tell it the modes and options. */
static void show_state(
	struct relay *relay, const struct session *session, const struct call *answer)
{
	struct span result = message_place(&answer->message, PLACE_RESULT);
	struct json_writer writer;
	struct json_doc *doc = result.len > 0 && result.data[0] == '{'
	                               ? json_doc_parse_unchecked(result, NULL)
	                               : NULL;
	if (!doc) {
		return;
	}
	json_node mode = json_path(doc, 0, "modes.currentModeId");
	if (json_is(doc, mode, JSON_STRING)) {
		session_update_begin(relay, &writer, session->id, "current_mode_update");
		json_write_member_raw(&writer, "currentModeId", json_raw(doc, mode));
		session_update_send(relay, &writer);
	}
	json_node options = json_get(doc, 0, "configOptions");
	if (json_is(doc, options, JSON_ARRAY)) {
		session_update_begin(relay, &writer, session->id, "config_option_update");
		json_write_member_raw(&writer, "configOptions", json_raw(doc, options));
		session_update_send(relay, &writer);
	}
	json_doc_destroy(doc);
}

/* The session was restored, but in another sandbox. */
static void tell_of_move(
	struct relay *relay, const struct restore *restore, const struct session *session)
{
	char text[ERROR_TEXT_MAX];
	const char *root = session->roots ? session->roots[0] : NULL;
	bool is_same = sandbox_is_instance(restore->old_instance, session->instance);
	if (!restore->old_root || !root || (is_same && strcmp(restore->old_root, root) == 0)) {
		return;
	}
	if (is_same) {
		text_format(text, sizeof(text),
			"The session continues in another sandbox, in %s; what was changed in "
			"%s since the last sync is not here",
			root, restore->old_root);
	} else if (relay->config.profile->sync.mode == SYNC_MODE_NONE) {
		text_format(text, sizeof(text),
			"The session continues in a new sandbox: its earlier one (%s) was "
			"deleted, and with it everything in %s, which was never brought "
			"here (sync = none)",
			restore->old_instance, restore->old_root);
	} else {
		text_format(text, sizeof(text),
			"The session continues in a new sandbox, with the workspace as it is here: "
			"its earlier one (%s) was deleted, and with it what was changed in "
			"%s since the last sync",
			restore->old_instance, restore->old_root);
	}
	notice_send(relay, session, text, true);
}

/*
 * Tells the user what happened to the sandbox on the way, such as a lost connection that had left
 * an agent.
 */
static void tell_of_sandbox(struct relay *relay, const struct session *session)
{
	struct sandbox *sandbox = session->peer ? agent_sandbox(session->peer->agent) : NULL;
	char *remark = sandbox ? sandbox_take_remark(sandbox) : NULL;
	if (remark) {
		notice_send(relay, session, remark, true);
	}
	free(remark);
}

/* Waiting requests go on as if they arrived now. */
static void end_well(struct restore *restore)
{
	struct relay *relay = restore->relay;
	int count = desk_load(&relay->desk, restore_pick(restore)).count;
	list_remove(&restore->link);
	list_init(&restore->link);
	while (count-- > 0) { // one may begin another restore and wait again
		struct call call;
		struct waiting *waiting = desk_first(&relay->desk, restore_pick(restore));
		if (!waiting) {
			break; // an earlier one has cancelled it
		}
		if (desk_open(waiting, &call)) {
			bool is_taken = relay->ops->on_editor_call(relay, &call);
			(void)is_taken; // always true for a request
		}
		desk_drop(waiting);
	}
	restore_destroy(restore);
}

void restore_on_quiet(struct ev_loop *loop, ev_timer *timer, int events)
{
	end_well(CONTAINER_OF(timer, struct restore, quiet));
}

/* Waits for a moment of quiet, from now on again, but with an end. */
static void await_quiet(struct restore *restore)
{
	struct ev_loop *loop = restore->relay->config.loop;
	double left = restore->loaded_at + RESTORE_REPLAY_MS / 1000. - ev_now(loop);
	double quiet = RESTORE_QUIET_MS / 1000.;
	ev_timer_stop(loop, &restore->quiet);
	ev_timer_set(&restore->quiet, left < quiet ? (left > 0. ? left : 0.) : quiet, 0.);
	ev_timer_start(loop, &restore->quiet);
}

static void on_restored(struct restore *restore, struct request *request, const struct call *answer)
{
	struct error err;
	struct relay *relay = restore->relay;
	struct opens *opens = opens_of(request);
	words_free(opens->notices); // already shown when it was opened
	opens->notices = NULL;
	bool ok = request->method->on_result(relay, request, answer, &err);
	struct session *session = session_find(&relay->sessions, restore->session_id);
	if (!ok || !session) {
		if (ok) {
			failure_set(&err, "SESSION_LOST", "session",
				"the session was forgotten meanwhile");
		}
		restore_fail(restore, error_at(&err, "session"));
		return;
	}
	log_info("session %s: its agent was restarted and has restored it (%s)", session->id,
		request->method->name);
	show_state(relay, session, answer);
	tell_of_sandbox(relay, session);
	tell_of_move(relay, restore, session);
	request->method->on_over(relay, request);
	if (restore->is_load) {
		session->hides_replay = true;
		restore->loaded_at = ev_now(relay->config.loop);
		await_quiet(restore);
	} else {
		end_well(restore);
	}
}

static struct restore *find_id(struct relay *relay, struct span id)
{
	size_t skip = strlen(RESTORE_ID_PREFIX);
	if (list_is_empty(&restores_of(relay)->all) || !restore_is_own(id)) {
		return NULL;
	}
	unsigned number = (unsigned)strtoul(id.data + skip, NULL, 10);
	LIST_FOR_EACH(restore, &restores_of(relay)->all, struct restore, link) {
		if (restore->number == number) {
			return restore;
		}
	}
	return NULL;
}

/* The agent does not know the session because it is in a new sandbox. */
static void tell_of_deletion(
	const struct restore *restore, const struct request *request, char *why, size_t size)
{
	const struct sandbox *sandbox = agent_sandbox(request->peer->agent);
	why[0] = '\0';
	if (sandbox && !sandbox_is_instance(restore->old_instance, sandbox_instance(sandbox))) {
		text_format(why, size,
			"its sandbox (%s) was deleted, with what was changed in %s since "
			"the last sync; the agent is in a new one: ",
			restore->old_instance, restore->old_root ? restore->old_root : "it");
	}
}

static void on_answer(struct relay *relay, struct request *request, const struct call *answer,
	const struct error *failure)
{
	struct error err;
	char why[ERROR_TEXT_MAX];
	struct restore *restore = find_id(relay, pending_origin(&request->pending));
	if (!restore) {
		return;
	}
	if (failure) {
		restore_fail(restore, failure);
	} else if (answer->message.is_error) {
		struct span error = message_place(&answer->message, PLACE_ERROR);
		tell_of_deletion(restore, request, why, sizeof(why));
		char said[FAILURE_SAID_MAX];
		char *detail = failure_read_error(error, said);
		text_append(why, sizeof(why), "%s", said);
		restore_describe_loss(
			session_find(&relay->sessions, restore->session_id), why, &err);
		err.detail = span_of(detail ? detail : "");
		restore_fail(restore, &err);
		free(detail);
	} else {
		on_restored(restore, request, answer);
	}
}

void restore_claim(struct relay *relay, struct request *request, const struct call *call)
{
	if (find_id(relay, call->message.id)) {
		request->on_answer = on_answer;
	}
}

bool restore_takes_failure(struct relay *relay, struct span id, const struct error *failure)
{
	struct restore *restore = find_id(relay, id);
	if (restore) {
		restore_fail(restore, failure);
	}
	return restore != NULL;
}

/* Whether an update is about the session's present state. */
static bool is_state(const struct call *call)
{
	static const char *const states[] = {"available_commands_update", "current_mode_update",
		"config_option_update", "session_info_update", "usage_update"};
	char kind[sizeof("available_commands_update")];
	bool is_short = message_string(&call->message, PLACE_UPDATE_KIND, kind, sizeof(kind));
	for (size_t i = 0; is_short && i < ARRAY_LENGTH(states); i++) {
		if (strcmp(kind, states[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* Its session/load is unanswered: the session has no agent. */
static bool is_being_loaded(const struct peer *peer, const char *agent_id)
{
	struct relay *relay = peer->relay;
	LIST_FOR_EACH(restore, &restores_of(relay)->all, struct restore, link) {
		const struct session *session = session_find(&relay->sessions, restore->session_id);
		if (restore->is_load && session && !session->peer &&
			session->agent_number == peer->number &&
			strcmp(session->agent_id, agent_id) == 0) {
			return true;
		}
	}
	return false;
}

bool restore_hides(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	char id[MESSAGE_SESSION_ID_MAX + 1];
	if (restores_of(relay)->begun == 0 || call->method->means != MEANS_UPDATE ||
		!message_string(&call->message, PLACE_SESSION_ID, id, sizeof(id))) {
		return false;
	}
	const struct session *session = session_find_agent(&relay->sessions, peer, id);
	bool goes_on = session && session->hides_replay;
	if ((!goes_on && !is_being_loaded(peer, id)) || is_state(call)) {
		return false;
	}
	LIST_FOR_EACH(restore, &restores_of(relay)->all, struct restore, link) {
		if (goes_on && strcmp(restore->session_id, session->id) == 0) {
			await_quiet(restore);
		}
	}
	return true;
}
