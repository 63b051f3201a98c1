/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ERROR_HINT_H
#define BROKER_RELAY_ERROR_HINT_H

#include "broker/session/hop.h"

/*
 * Adds a sentence to the message of an agent's error, on its way to the editor, if the agent itself
 * does not say what helps. Adds an edit to the call, or none.
 *
 * auth_required (ACP, ErrorCode -32000): an agent on another host usually lacks the login files
 * that the user has on this one, and the broker offers the editor no login in a terminal. So the
 * sentence names the profile's keys that pass a login on. For a confined agent it says how the user
 * logs in outside of the cell.
 *
 * Internal error (-32603) of a request that opens a session: some agents refuse to work as root,
 * and say so only on stderr. That line is added, unless the agent's user is known not to be root.
 */
bool error_hint_edit(struct peer *peer, const struct request *request, const struct call *call,
	struct error *err) ATTR_NODISCARD;

#endif
