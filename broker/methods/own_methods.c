/* SPDX-License-Identifier: MIT */
#include "broker/methods/own_methods.h"

#include <stdio.h>
#include <string.h>

#include "broker/gate/grant_resolve.h"
#include "broker/methods/exec_methods.h"
#include "broker/methods/explain.h"
#include "broker/methods/forward_methods.h"
#include "broker/methods/fs_methods.h"
#include "broker/methods/health.h"
#include "broker/methods/inquiry.h"
#include "broker/methods/pause.h"
#include "broker/methods/sandbox_call.h"
#include "broker/methods/sync_methods.h"
#include "broker/methods/usage_report.h"
#include "broker/session/answer.h"
#include "broker/session/hop.h"

static const struct {
	const char *name;
	void (*handle)(struct relay *relay, const struct call *call);
	bool waits; // its answer may take time
} methods[] = {
	{"_broker/policy/explain", explain_call, true},
	{"_broker/session/status", sync_methods_status, false},
	{"_broker/session/pause", pause_call, true},
	{"_broker/session/resume", pause_resume_call, true},
	{"_broker/health", health_call, true},
	{"_broker/exec", exec_methods_exec, true},
	{"_broker/exec/start", exec_methods_start, true},
	{"_broker/exec/status", exec_methods_status, false},
	{"_broker/exec/kill", exec_methods_kill, false},
	{"_broker/forward", forward_methods_open, false},
	{"_broker/forward/close", forward_methods_close, false},
	{"_broker/fs/list", fs_methods_list, true},
	{"_broker/fs/stat", fs_methods_stat, true},
	{"_broker/fs/read", fs_methods_read, true},
	{"_broker/fs/write", fs_methods_write, true},
	{"_broker/usage", usage_report_call, false},
	{"_broker/sync", sync_methods_sync, true},
	{"_broker/checkpoint/create", sync_methods_create, true},
	{"_broker/checkpoint/list", sync_methods_list, true},
	{"_broker/checkpoint/diff", sync_methods_diff, true},
	{"_broker/checkpoint/rollback", sync_methods_rollback, true},
};

/* Whether one more request may be in progress; otherwise it is answered with an error. */
static bool has_room(struct relay *relay, const struct call *call)
{
	struct backlog backlog = {
		.stage = "relay", .what = "_broker/ requests", .that = "their answers"};
	inquiry_count(relay, &backlog.count, &backlog.bytes);
	grant_resolve_count(relay, &backlog.count, &backlog.bytes);
	backlog.count += health_count(relay) + sandbox_calls_count(relay);
	return relay_admits(relay, call, &backlog);
}

void own_methods_call(struct relay *relay, const struct call *call)
{
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (strcmp(methods[i].name, call->message.method) == 0) {
			if (!methods[i].waits || has_room(relay, call)) {
				methods[i].handle(relay, call);
			}
			return;
		}
	}
	struct error err;
	relay_fail(relay, call->message.id,
		failure_set(&err, "METHOD_NOT_FOUND", "relay", "the broker has no method %s",
			call->message.method));
}

const char *own_method_name(size_t index)
{
	return index < ARRAY_LENGTH(methods) ? methods[index].name : NULL;
}
