/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GUARD_PATHS_H
#define SYNC_GUARD_PATHS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Files from which the user's own tools read commands (the key guard-paths). An agent that writes
 * one can make the user run anything. This file knows which paths are guarded, and which changes of
 * their content matter. It does not decide what happens to them.
 */
struct guard_paths;

/*
 * Takes the values of the key: globs (base/glob.h), and the words "default" (the built-in list) and
 * "none". A glob matches from any folder, or from the root if it begins with a slash. A glob that
 * matches a folder includes everything in it. Without a value it is the built-in list.
 * ERROR_CONFIG.
 */
struct guard_paths *guard_paths_create(const char *const *values, struct error *err) ATTR_NODISCARD;
struct guard_paths *guard_paths_copy(const struct guard_paths *guard); // NULL for NULL
void guard_paths_destroy(struct guard_paths *guard);                   // NULL is fine

/*
 * Whether a path below the root is guarded, in any spelling that some file system treats as equal.
 * A glob that may begin in any folder is also matched against the folders above the root. A link is
 * guarded too if a guarded file would be reachable through it.
 */
bool guard_paths_have(
	const struct guard_paths *guard, const char *root, const char *path, bool is_link);

/* Folds all spellings of a path that guard_paths_have treats as equal into one. */
void guard_paths_fold(char *path);

/*
 * Whether new content of a guarded file may make a tool run something that it did not run with the
 * old content. `old` is empty for a new file. For most files any change counts. In .gitattributes
 * only lines that may name a filter count. In .claude/settings*.json only hooks, mcpServers,
 * apiKeyHelper and env count.
 */
bool guard_content_counts(const char *path, struct span old, struct span content);

#endif
