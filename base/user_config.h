/* SPDX-License-Identifier: MIT */
#ifndef BASE_USER_CONFIG_H
#define BASE_USER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/user_repository.h"

/*
 * The user's configuration of git, as git-config(1) reads it: the system's file, the user's own two
 * or that of GIT_CONFIG_GLOBAL, the repository's, and what they include. libgit2 is not asked: it
 * gives a file up in which a path begins with "~/" and finds the user's home only where it would
 * read his configuration for our repositories as well.
 */
struct user_setting {
	char *key;   // owned: "section.name" or "section.sub.name"; section and name in lower case
	char *value; // owned; NULL where only the name stands there, which is true
	bool is_certain; // else it stands under a condition that is not evaluated here
};

struct user_config {
	struct user_setting *settings; // in their order: of two of a key the later one wins
	size_t count;
	/* What reading has taken so far. */
	size_t files, bytes;
};

/*
 * Keeps what the environment says of where git's configuration is (XDG_CONFIG_HOME,
 * GIT_CONFIG_GLOBAL) for the whole process. Before the first thread; without it, nothing is said.
 */
void user_config_set_environment(const char *const *environment);

/*
 * Reads all of it anew into a zeroed struct. A file that is missing says nothing. Fails where one
 * cannot be read or is none, or has a path that cannot be expanded (ERROR_CONFIG), or where it is
 * more than 256 files or 4 MiB (ERROR_LIMIT); *config has what came before then. `home` may be
 * NULL, the repository's folders "". Blocks.
 */
bool user_config_read(struct user_config *config, const char *home,
	const struct user_repository *repository, struct error *err) ATTR_NODISCARD;

void user_config_finish(struct user_config *config); // also of one that was not read

/* The last certain one; NULL where there is none, "" where only the name stands there. */
const char *user_config_get(const struct user_config *config, const char *key);
bool user_config_is_true(const struct user_config *config, const char *key);

/*
 * The file that the setting names, or, where it is not set, `name` of git's folder in the user's
 * ("attributes", "ignore"); "" where there is no home. Fails where its path cannot be expanded.
 */
bool user_config_file(const struct user_config *config, const char *key, const char *name,
	const char *home, char path[PATH_MAX], struct error *err) ATTR_NODISCARD;

#endif
