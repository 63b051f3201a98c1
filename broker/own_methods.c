/* SPDX-License-Identifier: MIT */
#include "broker/own_methods.h"

#include <stdio.h>
#include <string.h>

#include "broker/explain.h"
#include "broker/health.h"
#include "broker/pause.h"
#include "broker/relay_internal.h"
#include "broker/sync_methods.h"

static const struct {
	const char *name;
	void (*handle)(struct relay *relay, const struct call *call);
} methods[] = {
	{"_broker/policy/explain", explain_call},
	{"_broker/session/status", sync_methods_status},
	{"_broker/session/pause", pause_call},
	{"_broker/session/resume", pause_resume_call},
	{"_broker/health", health_call},
	{"_broker/usage", usage_call},
	{"_broker/sync", sync_methods_sync},
	{"_broker/checkpoint/create", sync_methods_create},
	{"_broker/checkpoint/list", sync_methods_list},
	{"_broker/checkpoint/diff", sync_methods_diff},
	{"_broker/checkpoint/rollback", sync_methods_rollback},
};

void own_methods_call(struct relay *relay, const struct call *call)
{
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (strcmp(methods[i].name, call->message.method) == 0) {
			methods[i].handle(relay, call);
			return;
		}
	}
	char text[MESSAGE_METHOD_MAX + 64];
	snprintf(text, sizeof(text), "the broker has no method %s", call->message.method);
	relay_fail(relay, call->message.id,
		&(struct failure){"METHOD_NOT_FOUND", "relay", text, {NULL, 0}});
}

const char *own_method_name(size_t index)
{
	return index < ARRAY_LENGTH(methods) ? methods[index].name : NULL;
}
