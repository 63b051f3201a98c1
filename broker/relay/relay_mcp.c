/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_mcp.h"
#include "broker/relay/opens.h"

#include <stdlib.h>

#include "base/words.h"
#include "broker/agent/mcp_servers.h"
#include "broker/session/notice.h"
#include "broker/session/root_names.h"

/*
 * The types of MCP servers that the agent supports besides stdio, once it has said so: a part of
 * the relay.
 */
struct taken {
	bool http;
	bool sse;
};

static const struct part_type type = {.size = sizeof(struct taken)};

void relay_mcp_learn(struct relay *relay, const struct call *call)
{
	struct taken *taken = parts_get(&relay->parts, &type);
	taken->http = span_is(message_place(&call->message, PLACE_RESULT_MCP_HTTP), "true");
	taken->sse = span_is(message_place(&call->message, PLACE_RESULT_MCP_SSE), "true");
}

static struct mcp_context context_of(const struct peer *peer, const struct call *call)
{
	const struct relay *relay = peer->relay;
	const struct taken *taken = parts_find(&relay->parts, &type);
	const struct sandbox_capabilities *capabilities =
		sandbox_capabilities(agent_sandbox(peer->agent));
	return (struct mcp_context){
		.servers = relay->config.profile->mcp,
		.server_count = relay->config.profile->mcp_count,
		.map = &peer->map,
		.commands = call->mcp,
		.has_other_files = capabilities->isolated || capabilities->maps_paths,
		.has_other_loopback = !capabilities->shares_loopback,
		.lacks_http = taken && !taken->http,
		.lacks_sse = taken && !taken->sse,
	};
}

struct mcp_lookup *relay_mcp_ask(struct peer *peer, const struct call *call,
	struct mcp_commands *commands, void (*done)(void *data), void *data)
{
	char cwd[FILE_PATH_MAX];
	const struct profile *profile = peer->relay->config.profile;
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	struct mcp_context context = context_of(peer, call);
	bool ok = mcp_servers_collect(&context, &call->message, commands, NULL);
	if (!ok || commands->count == 0) {
		return NULL; // relay_mcp_edit refuses a list that is too long
	}
	bool has_cwd = message_string(&call->message, PLACE_CWD, cwd, sizeof(cwd));
	char *runtime = has_cwd ? relay_map_path(peer, PATH_TO_RUNTIME, cwd) : NULL;
	char **env = config_profile_environment(profile, sandbox_agent_environment(sandbox));
	struct mcp_lookup_config config = {
		.loop = peer->relay->config.loop,
		.sandbox = sandbox,
		.env = (const char *const *)env,
		.cwd = runtime,
		.timeout_ms = profile->mcp_timeout_ms,
	};
	struct mcp_lookup *lookup = mcp_lookup_start(&config, commands, done, data);
	words_free(env);
	free(runtime);
	return lookup;
}

bool relay_mcp_edit(
	struct peer *peer, struct request *request, const struct call *call, struct error *err)
{
	struct mcp_context context = context_of(peer, call);
	return mcp_servers_edit(
		&context, &call->message, call->edits, &opens_of(request)->notices, err);
}

void relay_mcp_tell(struct relay *relay, const struct request *request)
{
	const struct opens *opens = opens_find(request);
	const struct session *session = opens_session(relay, request);
	for (char **text = session ? opens->notices : NULL; session && text && *text; text++) {
		notice_send(relay, session, *text, true);
	}
}
