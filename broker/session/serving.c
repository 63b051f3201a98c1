/* SPDX-License-Identifier: MIT */
#include "broker/session/serving.h"

#include "broker/toolhost/toolhost.h"

bool relay_shares_files(const struct peer *peer)
{
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	if (!sandbox) {
		return true;
	}
	const struct sandbox_capabilities *capabilities = sandbox_capabilities(sandbox);
	return !capabilities->isolated && !capabilities->maps_paths;
}

/* The editor is not confined, and would serve files that a confined agent may not reach. */
static bool is_confined_here(const struct peer *peer)
{
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	return sandbox && sandbox_capabilities(sandbox)->confined && relay_shares_files(peer);
}

bool relay_uses_toolhost(const struct peer *peer)
{
	enum toolhost_mode mode = peer->relay->config.profile->toolhost;
	return is_confined_here(peer) ||
	       (mode == TOOLHOST_AUTO ? !relay_shares_files(peer) : mode == TOOLHOST_BROKER);
}

bool relay_editor_serves_elsewhere(const struct peer *peer)
{
	return !relay_uses_toolhost(peer) && !relay_shares_files(peer);
}

bool relay_refuses_terminals(const struct peer *peer)
{
	return relay_editor_serves_elsewhere(peer) &&
	       !peer->relay->config.profile->editor_terminals;
}

bool relay_toolhost_serves(const struct peer *peer, const char *method)
{
	return toolhost_has_method(method) && relay_uses_toolhost(peer);
}
