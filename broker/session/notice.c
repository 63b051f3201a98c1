/* SPDX-License-Identifier: MIT */
#include "broker/session/notice.h"

#include <assert.h>

#include "base/log.h"
#include "base/text.h"
#include "broker/session/hop.h"
#include "broker/session/session_update.h"
#include "broker/session/tool_call_id.h"

static const char *status_name(enum notice_status status)
{
	static const char *const names[] = {"in_progress", "completed", "failed"};
	assert((size_t)status < ARRAY_LENGTH(names));
	return names[status];
}

struct notices {
	unsigned count;                // sent so far
	char prefix[TOOL_CALL_ID_MAX]; // of their tool-call ids
};

static void init(void *part)
{
	tool_call_id_create_notice(((struct notices *)part)->prefix);
}

static const struct part_type type = {.size = sizeof(struct notices), .init = init};

/* ACP: session/update of the kinds tool_call and tool_call_update. */
unsigned notice_show(struct relay *relay, const struct session *session, unsigned number,
	const char *title, enum notice_status status)
{
	struct json_writer writer;
	char id[TOOL_CALL_ID_MAX + 16];
	struct notices *notices = parts_get(&relay->parts, &type);
	bool is_new = number == 0;
	number = is_new ? ++notices->count : number;
	text_whole(id, sizeof(id), "%s%u", notices->prefix, number);
	session_update_begin(
		relay, &writer, session->id, is_new ? "tool_call" : "tool_call_update");
	json_write_member(&writer, "toolCallId", id);
	json_write_member(&writer, "title", title);
	if (is_new) {
		json_write_member(&writer, "kind", "other");
	}
	json_write_member(&writer, "status", status_name(status));
	session_update_send(relay, &writer);
	return number;
}

void notice_send(
	struct relay *relay, const struct session *session, const char *text, bool is_failure)
{
	log_warning("session %s: %s", session->id, text);
	notice_show(relay, session, 0, text, is_failure ? NOTICE_FAILED : NOTICE_COMPLETED);
}
