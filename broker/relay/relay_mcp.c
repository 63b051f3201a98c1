/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_mcp.h"
#include "broker/relay/opens.h"
#include "broker/relay/relay_mcp_exec.h"

#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "broker/agent/mcp_servers.h"
#include "broker/session/notice.h"
#include "broker/session/root_names.h"
#include "providers/network.h"

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

/* The profile's own lines say which ports of this machine a cell reaches. */
static bool reaches_port(const void *data, uint16_t port)
{
	const struct settings *settings = data;
	struct network_policy policy;
	const char *key;
	struct error err;
	bool is_reached = false;
	if (!network_policy_read(&policy, settings, &key, &err)) {
		return false;
	}
	for (char **entry = policy.hosts; *entry; entry++) {
		struct network_host host;
		is_reached = is_reached || (network_host_read(&host, *entry) && host.is_service &&
						   host.port == port);
	}
	network_policy_finish(&policy);
	return is_reached;
}

/* The beginning of the profile's line that lets a cell reach a port; the port follows it. */
static const char *reached_by(const struct settings *settings)
{
	const char *mode = settings_get(settings, "network");
	bool has_list = mode && (strcmp(mode, network_modes[NETWORK_ALLOW]) == 0 ||
					strcmp(mode, network_modes[NETWORK_ASK]) == 0);
	return has_list ? "allow-host = localhost:"
	                : "network = allow with allow-host = localhost:";
}

static struct mcp_context context_of(const struct peer *peer, const struct call *call)
{
	const struct relay *relay = peer->relay;
	const struct taken *taken = parts_find(&relay->parts, &type);
	const struct sandbox_capabilities *capabilities =
		sandbox_capabilities(agent_sandbox(peer->agent));
	bool is_cell = capabilities->confined && !capabilities->shares_loopback;
	const struct settings *settings = &relay->config.profile->settings;
	return (struct mcp_context){
		.reaches_port = is_cell ? reaches_port : NULL,
		.data = settings,
		.reached_by = is_cell ? reached_by(settings) : NULL,
		.servers = relay->config.profile->mcp,
		.server_count = relay->config.profile->mcp_count,
		.map = &peer->map,
		.commands = call->mcp,
		.has_other_files = capabilities->isolated || capabilities->maps_paths ||
	                           capabilities->other_programs,
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
	struct mcp_server own = {.name = NULL};
	char ***notices = &opens_of(request)->notices;
	if (relay_mcp_exec_offer(peer, request, &own, notices)) {
		context.own = &own;
	}
	bool ok = mcp_servers_edit(&context, &call->message, call->edits, notices, err);
	mcp_server_finish(&own);
	return ok;
}

void relay_mcp_tell(struct relay *relay, const struct request *request)
{
	const struct opens *opens = opens_find(request);
	const struct session *session = opens_session(relay, request);
	for (char **text = session ? opens->notices : NULL; session && text && *text; text++) {
		notice_send(relay, session, *text, true);
	}
}
