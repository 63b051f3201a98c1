/* SPDX-License-Identifier: MIT */
#ifndef BROKER_RELAY_AUTH_METHODS_H
#define BROKER_RELAY_AUTH_METHODS_H

#include "broker/session/hop.h"

/*
 * The authMethods in an agent's answer to initialize, on their way to the editor (ACP,
 * "Authentication"). For a method of type terminal the editor runs its agent command (the broker)
 * with the args and env of that method. For _meta.terminal-auth, which some editors know, it runs
 * the command that the member names. So text from the agent becomes a command line of the user.
 *
 * If the agent runs on this machine with the user's own rights, a terminal method gets empty args
 * and a token in its env (broker/agent/login_note.h). Otherwise no terminal method and no
 * _meta.terminal-auth is passed on.
 */
enum { AUTH_METHODS_TERMINAL_MAX = 8 }; // further ones are left out

bool auth_methods_edit(
	struct peer *peer, const struct call *call, struct error *err) ATTR_NODISCARD;

#endif
