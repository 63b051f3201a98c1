/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SERVING_H
#define BROKER_SESSION_SERVING_H

#include "broker/session/hop.h"

/* Who serves an agent's files and terminals. */

/* Whether the agent works on the editor's own files, not in a copy or on another machine. */
bool relay_shares_files(const struct peer *peer);

/*
 * Whether the editor serves its own files to an agent that works on other files (toolhost =
 * editor).
 */
bool relay_editor_serves_elsewhere(const struct peer *peer);

/* Whether the editor would have to run such an agent's commands although the profile forbids it. */
bool relay_refuses_terminals(const struct peer *peer);

/*
 * Whether the ToolHost, not the editor, serves this agent; and whether it serves this method of the
 * agent.
 */
bool relay_uses_toolhost(const struct peer *peer);
bool relay_toolhost_serves(const struct peer *peer, const char *method);

#endif
