/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_MERGE_TOOL_H
#define BROKER_CLI_MERGE_TOOL_H

#include "sync/conflicts.h"

/*
 * Lets the user edit the merged file of a conflict, on the terminal that the command has, and waits
 * for as long as that takes. The program is merge.tool of the user's git, run as git mergetool runs
 * it (git-mergetool--lib); without that $VISUAL or $EDITOR. The configuration of the workspace's
 * repository is not read: an agent may have written it. ERROR_CONFIG where none is set,
 * ERROR_UNAVAILABLE where the program failed: nothing but the merged file was changed.
 */
bool merge_tool_run(const char *const *environment, const struct conflict_edit *edit,
	struct error *err) ATTR_NODISCARD;

#endif
