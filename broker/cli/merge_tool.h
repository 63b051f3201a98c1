/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_MERGE_TOOL_H
#define BROKER_CLI_MERGE_TOOL_H

#include "sync/conflicts.h"

/*
 * Lets the user edit the merged file of a conflict, on the command's terminal, and waits until that
 * ends. Runs merge.tool of the user's git as git mergetool does (git-mergetool--lib); if it is not
 * set, $VISUAL or $EDITOR. Ignores the configuration of the workspace's repository, because an
 * agent may have written it. ERROR_CONFIG if no program is set, ERROR_UNAVAILABLE if the program
 * failed. Changes only the merged file.
 */
bool merge_tool_run(const char *const *environment, const struct conflict_edit *edit,
	struct error *err) ATTR_NODISCARD;

#endif
