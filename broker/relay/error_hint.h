/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_ERROR_HINT_H
#define BROKER_RELAY_ERROR_HINT_H

#include "broker/session/hop.h"

/*
 * What the broker adds to the message of an agent's error, on its way to the editor, where the
 * agent itself does not say what helps. Adds an edit to the call, or none.
 *
 * auth_required (ACP, ErrorCode -32000): an agent on another host lacks mostly what the user has
 * in that host's login files, and the editor is offered no login in a terminal; so which keys of
 * the profile hand on what is needed. A confined agent: how its user logs in outside.
 *
 * An internal error (-32603) of a request that opens a session: some agents refuse to work as
 * root, and say so on stderr alone. That line is added.
 */
bool error_hint_edit(struct peer *peer, const struct request *request, const struct call *call,
	struct error *err) ATTR_NODISCARD;

#endif
