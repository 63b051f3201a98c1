/* SPDX-License-Identifier: MIT */
#include "broker/session/usage.h"

#include <string.h>

#include "broker/session/hop.h"
#include "sync/workspace.h"

/* ---- messages ---- */

static bool is_same(
	const struct usage_memo *memo, const struct session_table *sessions, struct span raw)
{
	return memo->len == raw.len && memo->forgotten == sessions->forgotten && raw.len > 0 &&
	       memcmp(memo->raw, raw.data, raw.len) == 0;
}

static void remember(struct usage_memo *memo, const struct session_table *sessions, struct span raw,
	struct session *session)
{
	memo->len = 0;
	if (session && raw.len <= sizeof(memo->raw)) {
		memcpy(memo->raw, raw.data, raw.len);
		memo->len = (uint32_t)raw.len;
		memo->session = session;
		memo->forgotten = sessions->forgotten;
	}
}

void usage_note_editor(struct relay *relay, const struct call *call)
{
	struct usage_memo *memo = &relay->usage_memo;
	struct span raw = message_place(&call->message, PLACE_SESSION_ID);
	if (raw.len > 0 && !is_same(memo, &relay->sessions, raw)) {
		remember(memo, &relay->sessions, raw, relay_session_of(relay, &call->message));
	}
	if (raw.len > 0 && memo->len > 0) {
		memo->session->usage.editor_bytes += call->frame->length;
	}
}

void usage_note_agent(struct peer *peer, const struct call *call)
{
	struct relay *relay = peer->relay;
	struct usage_memo *memo = &peer->usage_memo;
	struct span raw = message_place(&call->message, PLACE_SESSION_ID);
	if (raw.len > 0 && !is_same(memo, &relay->sessions, raw)) {
		remember(memo, &relay->sessions, raw, relay_session_of_agent(peer, &call->message));
	}
	struct session *session = raw.len > 0 && memo->len > 0 ? memo->session : NULL;
	if (session) {
		session->usage.agent_bytes += call->frame->length;
	}
	if (call->message.kind == MESSAGE_REQUEST) {
		enum usage_tool tool = call->method->tool;
		relay->usage.total.tool_calls[tool]++;
		if (session) {
			session->usage.tool_calls[tool]++;
		}
	}
}

static const char *const tool_names[USAGE_TOOL_COUNT] = {
	[USAGE_READ_FILE] = "fs/read_text_file",
	[USAGE_WRITE_FILE] = "fs/write_text_file",
	[USAGE_TERMINAL_CREATE] = "terminal/create",
	[USAGE_TERMINAL_OUTPUT] = "terminal/output",
	[USAGE_TERMINAL_WAIT] = "terminal/wait_for_exit",
	[USAGE_TERMINAL_KILL] = "terminal/kill",
	[USAGE_TERMINAL_RELEASE] = "terminal/release",
	[USAGE_PERMISSION] = "session/request_permission",
	[USAGE_ELICITATION] = "elicitation/create",
	[USAGE_OTHER] = "other",
};

const char *usage_tool_name(enum usage_tool tool)
{
	return tool_names[tool];
}

/* ---- outcomes ---- */

void usage_note_prompt(struct relay *relay, struct session *session)
{
	relay->usage.total.prompts++;
	if (session) {
		session->usage.prompts++;
	}
}

void usage_note_decision(struct relay *relay, const struct session *session,
	enum policy_decision decision, enum audit_by by)
{
	struct session *counted = session ? session_find(&relay->sessions, session->id) : NULL;
	relay->usage.total.decisions[decision][by]++;
	if (counted) {
		counted->usage.decisions[decision][by]++;
	}
}

static uint64_t paths_of(const struct merge_counts *counts)
{
	return (uint64_t)counts->added + counts->changed + counts->deleted;
}

void usage_note_sync(struct relay *relay, const struct sync_result *result, const struct error *err)
{
	struct usage_syncs *syncs = &relay->usage.syncs;
	syncs->count++;
	if (err) {
		syncs->failed++;
		return;
	}
	syncs->duration_ms += (uint64_t)result->duration_ms;
	syncs->sent_bytes += result->sent_bytes;
	syncs->received_bytes += result->received_bytes;
	syncs->conflicts += result->conflict_count;
	syncs->to_local += paths_of(&result->to_local);
	syncs->to_runtime += paths_of(&result->to_runtime);
}

void usage_note_gone(struct peer *peer)
{
	const struct link *link = agent_link(peer->agent);
	peer->relay->usage.read_bytes += link->read_bytes;
	peer->relay->usage.written_bytes += link_written(link);
}
