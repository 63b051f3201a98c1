/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_LOGIN_HINT_H
#define BROKER_RELAY_LOGIN_HINT_H

#include "broker/session/hop.h"

/*
 * An agent on another host that answers with auth_required (ACP, ErrorCode -32000) lacks mostly
 * what the user has in that host's login files, and the editor is offered no login in a terminal.
 * So the message of that error, on its way to the editor, gets a sentence more: which keys of the
 * profile hand on what is needed. So does that of a confined agent of this machine: how its user
 * logs in outside. Adds an edit to the call, or none.
 */
bool login_hint_edit(struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;

#endif
