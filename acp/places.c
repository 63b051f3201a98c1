/* SPDX-License-Identifier: MIT */
#include "acp/places.h"

#include "base/attr.h"

/*
 * A member that the broker acts on may occur only once: of two values, the next reader might take
 * the other one.
 */
static const struct json_place place_table[] = {
	{PLACE_JSONRPC, "jsonrpc", JSON_PLACE_ONCE},
	{PLACE_ID, "id", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{PLACE_METHOD, "method", JSON_PLACE_ONCE | JSON_PLACE_KEEP},
	{PLACE_PARAMS, "params", JSON_PLACE_ONCE},
	{PLACE_RESULT, "result", JSON_PLACE_ONCE},
	{PLACE_ERROR, "error", JSON_PLACE_ONCE},
	{PLACE_SESSION_ID, "params.sessionId", JSON_PLACE_ONCE},
	{PLACE_REQUEST_ID, "params.requestId", JSON_PLACE_ONCE},
	{PLACE_PROTOCOL_VERSION, "params.protocolVersion", JSON_PLACE_ONCE},
	{PLACE_CLIENT_CAPABILITIES, "params.clientCapabilities", JSON_PLACE_ONCE},
	{PLACE_CLIENT_FS, "params.clientCapabilities.fs", JSON_PLACE_ONCE},
	{PLACE_CLIENT_TERMINAL, "params.clientCapabilities.terminal", JSON_PLACE_ONCE},
	{PLACE_CWD, "params.cwd", JSON_PLACE_ONCE},
	{PLACE_ADDITIONAL_DIRECTORY, "params.additionalDirectories[]", 0},
	{PLACE_CURSOR, "params.cursor", JSON_PLACE_ONCE},
	{PLACE_MODE_ID, "params.modeId", JSON_PLACE_ONCE},
	{PLACE_CONFIG_ID, "params.configId", JSON_PLACE_ONCE},
	{PLACE_CONFIG_VALUE, "params.value", JSON_PLACE_ONCE},
	{PLACE_MCP_SERVERS, "params.mcpServers", JSON_PLACE_ONCE},
	{PLACE_PATH, "params.path", JSON_PLACE_ONCE},
	{PLACE_COMMAND, "params.command", JSON_PLACE_ONCE},
	{PLACE_ARGS, "params.args", JSON_PLACE_ONCE},
	{PLACE_ENV, "params.env", JSON_PLACE_ONCE},
	{PLACE_CONTENT, "params.content", JSON_PLACE_ONCE},
	{PLACE_TOOL_CALL, "params.toolCall", JSON_PLACE_ONCE},
	{PLACE_TOOL_CALL_KIND, "params.toolCall.kind", 0},
	{PLACE_TOOL_CALL_COMMAND, "params.toolCall.rawInput.command", 0},
	{PLACE_TOOL_CALL_CWD, "params.toolCall.rawInput.cwd", 0},
	{PLACE_TOOL_CALL_ENV, "params.toolCall.rawInput.env", 0},
	{PLACE_OPTIONS, "params.options", JSON_PLACE_ONCE},
	{PLACE_UPDATE_KIND, "params.update.sessionUpdate", JSON_PLACE_ONCE},
	{PLACE_RESULT_SESSION_ID, "result.sessionId", JSON_PLACE_ONCE},
	{PLACE_RESULT_PROTOCOL_VERSION, "result.protocolVersion", JSON_PLACE_ONCE},
	{PLACE_RESULT_AUTH_METHODS, "result.authMethods", JSON_PLACE_ONCE},
	{PLACE_RESULT_AGENT_NAME, "result.agentInfo.name", JSON_PLACE_ONCE},
	{PLACE_NEXT_CURSOR, "result.nextCursor", JSON_PLACE_ONCE},
	{PLACE_LISTED, "result.sessions", JSON_PLACE_ONCE},
	{PLACE_LISTED_SESSION_ID, "result.sessions[].sessionId", 0},
	{PLACE_RESULT_MCP_HTTP, "result.agentCapabilities.mcpCapabilities.http", JSON_PLACE_ONCE},
	{PLACE_RESULT_MCP_SSE, "result.agentCapabilities.mcpCapabilities.sse", JSON_PLACE_ONCE},
	{PLACE_RESULT_LOAD, "result.agentCapabilities.loadSession", JSON_PLACE_ONCE},
	{PLACE_RESULT_CLOSE, "result.agentCapabilities.sessionCapabilities.close", JSON_PLACE_ONCE},
	{PLACE_RESULT_RESUME, "result.agentCapabilities.sessionCapabilities.resume",
		JSON_PLACE_ONCE},
	{PLACE_RESULT_META, "result._meta", JSON_PLACE_ONCE},
	{PLACE_RESULT_META_BROKER, "result._meta.broker", JSON_PLACE_ONCE},
	{PLACE_PROMPT, "params.prompt", 0},
	{PLACE_ANY_TOOL_CALL_ID, "params.toolCallId", JSON_PLACE_ANY_CASE},
	{PLACE_UPDATE_TOOL_CALL_ID, "params.update.toolCallId", JSON_PLACE_ANY_CASE},
	{PLACE_TOOL_CALL_ID, "params.toolCall.toolCallId", JSON_PLACE_ANY_CASE},
	{PLACE_PROMPT_URI, "params.prompt[].uri", 0},
	{PLACE_PROMPT_RESOURCE_URI, "params.prompt[].resource.uri", 0},
	{PLACE_UPDATE_LOCATION, "params.update.locations[].path", 0},
	{PLACE_UPDATE_DIFF, "params.update.content[].path", 0},
	{PLACE_UPDATE_URI, "params.update.content.uri", 0},
	{PLACE_UPDATE_RESOURCE_URI, "params.update.content.resource.uri", 0},
	{PLACE_UPDATE_ITEM_URI, "params.update.content[].content.uri", 0},
	{PLACE_UPDATE_ITEM_RESOURCE_URI, "params.update.content[].content.resource.uri", 0},
	{PLACE_UPDATE_TERMINAL_CWD, "params.update._meta.terminal_info.cwd", 0},
	{PLACE_TOOL_CALL_LOCATION, "params.toolCall.locations[].path", 0},
	{PLACE_TOOL_CALL_DIFF, "params.toolCall.content[].path", 0},
	{PLACE_TOOL_CALL_ITEM_URI, "params.toolCall.content[].content.uri", 0},
	{PLACE_TOOL_CALL_ITEM_RESOURCE_URI, "params.toolCall.content[].content.resource.uri", 0},
	{PLACE_LISTED_CWD, "result.sessions[].cwd", 0},
	{PLACE_LISTED_DIRECTORY, "result.sessions[].additionalDirectories[]", 0},
	{PLACE_ERROR_URI, "error.data.uri", 0},
};

struct json_places *places_create(void)
{
	return json_places_create(place_table, ARRAY_LENGTH(place_table));
}
