/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_agent_methods.h"

#include <string.h>

#include "broker/relay/relay_events.h"
#include "broker/relay/relay_mcp_exec.h"

/* An elicitation may refer to a request of the editor, which the agent knows by this hop's id. */
static bool edit_elicitation(
	struct relay *relay, struct request *request, const struct call *call, struct error *err)
{
	const struct json_hit *hit = message_hit(&call->message, PLACE_REQUEST_ID);
	if (!hit) {
		return true;
	}
	struct pending *asked = pending_find(
		&request->peer->asked, message_place(&call->message, PLACE_REQUEST_ID));
	if (!asked || asked->origin_id_len == 0) {
		return error_set_reason(err, ERROR_PROTOCOL, "INVALID_PARAMS",
			"elicitation/create: requestId names no request that is open");
	}
	return splice_add(call->edits, hit->start, hit->end, pending_origin(asked), err);
}

static const char permission_cancelled[] = "{\"outcome\":{\"outcome\":\"cancelled\"}}";
static const char elicitation_cancelled[] = "{\"action\":\"cancel\"}";

/* Sorted by frequency. */
static const struct method methods[] = {
	{.name = "session/update", .means = MEANS_UPDATE, .tool = USAGE_OTHER},
	{.name = "fs/read_text_file",
		.means = MEANS_TOOL,
		.operation = POLICY_READ,
		.tool = USAGE_READ_FILE,
		.is_request = true,
		.raise = relay_tool_asks},
	{.name = "fs/write_text_file",
		.means = MEANS_TOOL,
		.operation = POLICY_WRITE,
		.tool = USAGE_WRITE_FILE,
		.is_request = true,
		.raise = relay_tool_asks},
	{.name = "session/request_permission",
		.means = MEANS_TOOL,
		.operation = POLICY_GRANT,
		.tool = USAGE_PERMISSION,
		.is_request = true,
		.raise = relay_tool_asks,
		.result_when_gone = permission_cancelled},
	{.name = "terminal/create",
		.means = MEANS_TOOL,
		.operation = POLICY_TERMINAL,
		.tool = USAGE_TERMINAL_CREATE,
		.is_request = true,
		.is_terminal = true,
		.raise = relay_tool_asks},
	{.name = "terminal/output",
		.tool = USAGE_TERMINAL_OUTPUT,
		.is_request = true,
		.is_terminal = true},
	{.name = "terminal/wait_for_exit",
		.tool = USAGE_TERMINAL_WAIT,
		.is_request = true,
		.is_terminal = true},
	{.name = "terminal/kill",
		.tool = USAGE_TERMINAL_KILL,
		.is_request = true,
		.is_terminal = true},
	{.name = "terminal/release",
		.tool = USAGE_TERMINAL_RELEASE,
		.is_request = true,
		.is_terminal = true},
	{.name = "elicitation/create",
		.tool = USAGE_ELICITATION,
		.is_request = true,
		.on_send = edit_elicitation,
		.result_when_gone = elicitation_cancelled},
	{.name = "elicitation/complete", .tool = USAGE_OTHER},
	{.name = "$/cancel_request", .means = MEANS_CANCEL_REQUEST, .tool = USAGE_OTHER},
};

/*
 * It is none of the agent's, so no message of an agent has it. The broker serves the command
 * itself, wherever the editor's terminals are.
 */
const struct method relay_mcp_exec_method = {.name = "terminal/create",
	.means = MEANS_TOOL,
	.operation = POLICY_TERMINAL,
	.tool = USAGE_TERMINAL_CREATE,
	.is_request = true,
	.raise = relay_tool_asks,
	.serve = relay_mcp_exec_serve,
	.on_failure = relay_mcp_exec_fail};

/* Methods that ACP does not have; a later version may have such methods for files and terminals. */
static const struct {
	const char *prefix;
	struct method method;
} unknown_methods[] = {
	{"_broker/", {.route = ROUTE_OWN, .tool = USAGE_OTHER}},
	{"fs/", {.tool = USAGE_OTHER, .is_request = true}},
	{"terminal/", {.tool = USAGE_OTHER, .is_request = true, .is_terminal = true}},
	{"", {.tool = USAGE_OTHER}},
};

const struct method *relay_agent_method_of(const struct message *message)
{
	const char *name = message->method;
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (strcmp(methods[i].name, name) == 0) {
			return &methods[i];
		}
	}
	size_t i = 0;
	while (strncmp(name, unknown_methods[i].prefix, strlen(unknown_methods[i].prefix)) != 0) {
		i++; // the last one matches every name
	}
	return &unknown_methods[i].method;
}
