/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

/* Calls with long answers wait while the agent does not read its earlier answers. */

static bool is_full(const struct toolhost *toolhost)
{
	const struct toolhost_config *config = &toolhost->config;
	return config->listener->is_full && config->listener->is_full(config->data);
}

static bool has_room(const struct toolhost *toolhost, enum tool_hold kind)
{
	return kind != TOOL_HOLD_READ || toolhost->read_count < TOOL_READS_MAX;
}

bool tool_call_hold(
	struct tool_call *call, enum tool_hold kind, void (*go_on)(struct tool_call *call))
{
	struct toolhost *toolhost = call->toolhost;
	if (!is_full(toolhost) && has_room(toolhost, kind)) {
		return false;
	}
	call->hold = kind;
	call->go_on = go_on;
	list_append(&toolhost->held, &call->held_link);
	toolhost->held_count++;
	return true;
}

void tool_call_let_go(struct tool_call *call)
{
	if (call->go_on) {
		call->go_on = NULL;
		list_remove(&call->held_link);
		call->toolhost->held_count--;
	}
}

void toolhost_resume(struct toolhost *toolhost)
{
	LIST_FOR_EACH(call, &toolhost->held, struct tool_call, held_link) {
		if (is_full(toolhost)) {
			return;
		}
		if (has_room(toolhost, call->hold)) {
			void (*go_on)(struct tool_call *) = call->go_on;
			tool_call_let_go(call);
			go_on(call);
		}
	}
}
