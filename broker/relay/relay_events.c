/* SPDX-License-Identifier: MIT */
#include "broker/relay/relay_events.h"

#include "broker/gate/grant.h"
#include "broker/gate/grant_hosts.h"
#include "broker/relay/mode_guard.h"
#include "broker/relay/relay_turn.h"

/* What is found is reported later. Between two turns, too, processes may have made files. */
static void look(const struct peer *peer)
{
	struct sandbox *sandbox = agent_sandbox(peer->agent);
	if (sandbox) {
		sandbox_look(sandbox);
	}
}

bool relay_turn_begins(struct peer *peer, const struct call *call)
{
	look(peer);
	const struct session *session = relay_session_of(peer->relay, &call->message);
	if (session) {
		grant_hosts_turn_begins(peer, session);
	}
	return mode_guard_holds(peer->relay, call) || relay_turn_holds_prompt(peer, call);
}

bool relay_turn_ends(struct request *request, const struct call *answer)
{
	look(request->peer);
	return relay_turn_holds_answer(request, answer);
}

bool relay_tool_asks(struct peer *peer, const struct call *call)
{
	return grant_intercept(peer, call);
}
