/* SPDX-License-Identifier: MIT */
#ifndef BROKER_SESSION_SERVING_H
#define BROKER_SESSION_SERVING_H

#include "broker/session/hop.h"

/* Who serves an agent's files and terminals. */

/* Whether the agent works on the files that the editor has: no copy, and no other machine's. */
bool relay_shares_files(const struct peer *peer);

/* Whether the editor serves its own files to an agent that works on others (toolhost = editor). */
bool relay_editor_serves_elsewhere(const struct peer *peer);

/* Whether the editor would run such an agent's commands, and the profile does not allow it. */
bool relay_refuses_terminals(const struct peer *peer);

/* Whether the ToolHost serves this agent, and not the editor. */
bool relay_uses_toolhost(const struct peer *peer);
bool relay_toolhost_serves(const struct peer *peer, const char *method);

#endif
