/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GUARD_PATHS_H
#define SYNC_GUARD_PATHS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * The files that the user's own tools read commands from (the key guard-paths): an agent
 * that writes one has the user run what it likes. This knows which paths these are, and which
 * changes of their content count; not what becomes of them.
 */
struct guard_paths;

/*
 * The values of the key: globs (base/glob.h), the words "default" (the built-in list) and "none".
 * A glob begins in any folder, or at the root where it begins with a slash; one of a folder
 * stands for all that is in it. Without a value it is the built-in list. ERROR_CONFIG.
 */
struct guard_paths *guard_paths_create(const char *const *values, struct error *err) ATTR_NODISCARD;
struct guard_paths *guard_paths_copy(const struct guard_paths *guard); // NULL of NULL
void guard_paths_destroy(struct guard_paths *guard);                   // NULL is fine

/*
 * Whether a path below the root is one of them, in any spelling that some file system takes for
 * it. The names of the root count as well where a glob begins in any folder. A link is also one
 * where such a file would be found through it.
 */
bool guard_paths_have(
	const struct guard_paths *guard, const char *root, const char *path, bool is_link);

/* Makes one text of all spellings of a path that guard_paths_have takes for the same. */
void guard_paths_fold(char *path);

/*
 * Whether the new content of such a file may make a tool run something that it did not with the
 * old one, which is empty where there was none. Of most files any content does. Of .gitattributes
 * the lines that may name a filter count; of .claude/settings*.json hooks, mcpServers, apiKeyHelper
 * and env.
 */
bool guard_content_counts(const char *path, struct span old, struct span content);

#endif
