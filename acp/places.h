/* SPDX-License-Identifier: MIT */
#ifndef ACP_PLACES_H
#define ACP_PLACES_H

#include "base/json_check.h"

/*
 * The places of an ACP message that the broker reads or edits (protocol v1,
 * agentclientprotocol.com). One table serves every method and both directions: a place counts only
 * if the message's method gives it a meaning.
 */
enum place {
	/* The JSON-RPC 2.0 envelope. */
	PLACE_JSONRPC,
	PLACE_ID,
	PLACE_METHOD,
	PLACE_PARAMS,
	PLACE_RESULT,
	PLACE_ERROR,

	PLACE_SESSION_ID,           // nearly every method
	PLACE_REQUEST_ID,           // $/cancel_request, elicitation/create
	PLACE_PROTOCOL_VERSION,     // initialize
	PLACE_CLIENT_CAPABILITIES,  // initialize
	PLACE_CLIENT_FS,            // initialize
	PLACE_CLIENT_TERMINAL,      // initialize
	PLACE_CWD,                  // session/new, load, resume, fork, list; terminal/create
	PLACE_ADDITIONAL_DIRECTORY, // session/new, load, resume, fork; several
	PLACE_CURSOR,               // session/list
	PLACE_MODE_ID,              // session/set_mode
	PLACE_CONFIG_ID,            // session/set_config_option
	PLACE_CONFIG_VALUE,         // session/set_config_option
	PLACE_MCP_SERVERS,          // session/new, load, resume, fork
	PLACE_PATH,                 // fs/*
	PLACE_COMMAND,              // terminal/create
	PLACE_ARGS,                 // terminal/create
	PLACE_ENV,                  // terminal/create
	PLACE_CONTENT,              // fs/write_text_file
	PLACE_TOOL_CALL,            // session/request_permission
	PLACE_TOOL_CALL_KIND,       // session/request_permission
	PLACE_TOOL_CALL_COMMAND,    // session/request_permission; rawInput may have any form
	PLACE_TOOL_CALL_CWD,        // the same
	PLACE_TOOL_CALL_ENV,        // the same
	PLACE_OPTIONS,              // session/request_permission
	PLACE_UPDATE_KIND,          // session/update

	PLACE_RESULT_SESSION_ID,       // session/new, fork
	PLACE_RESULT_PROTOCOL_VERSION, // initialize
	PLACE_RESULT_AUTH_METHODS,     // initialize
	PLACE_RESULT_AGENT_NAME,       // initialize
	PLACE_NEXT_CURSOR,             // session/list
	PLACE_LISTED,                  // session/list
	PLACE_LISTED_SESSION_ID,       // session/list; several
	PLACE_RESULT_MCP_HTTP,         // initialize
	PLACE_RESULT_MCP_SSE,          // initialize
	PLACE_RESULT_LOAD,             // initialize
	PLACE_RESULT_CLOSE,            // initialize
	PLACE_RESULT_RESUME,           // initialize
	PLACE_RESULT_META,             // initialize
	PLACE_RESULT_META_BROKER,      // initialize, from a broker behind this one

	/*
	 * Ids of tool calls, with names in any case: an agent may not use an id of the broker's
	 * own.
	 */
	PLACE_ANY_TOOL_CALL_ID,    // elicitation/create, and other methods that name a tool call
	PLACE_UPDATE_TOOL_CALL_ID, // session/update
	PLACE_TOOL_CALL_ID,        // session/request_permission

	/*
	 * Paths and URIs, for agents whose roots are elsewhere (acp/rewrite.h). Each may occur
	 * several times.
	 */
	PLACE_PROMPT,
	PLACE_PROMPT_URI,
	PLACE_PROMPT_RESOURCE_URI,
	PLACE_UPDATE_LOCATION,
	PLACE_UPDATE_DIFF,
	PLACE_UPDATE_URI,
	PLACE_UPDATE_RESOURCE_URI,
	PLACE_UPDATE_ITEM_URI,
	PLACE_UPDATE_ITEM_RESOURCE_URI,
	PLACE_UPDATE_TERMINAL_CWD,
	PLACE_TOOL_CALL_LOCATION,
	PLACE_TOOL_CALL_DIFF,
	PLACE_TOOL_CALL_ITEM_URI,
	PLACE_TOOL_CALL_ITEM_RESOURCE_URI,
	PLACE_LISTED_CWD,
	PLACE_LISTED_DIRECTORY,
	PLACE_ERROR_URI,

	PLACE_COUNT,
};

/* The compiled table; the caller destroys it. */
struct json_places *places_create(void);

#endif
