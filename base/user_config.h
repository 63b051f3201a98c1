/* SPDX-License-Identifier: MIT */
#ifndef BASE_USER_CONFIG_H
#define BASE_USER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/user_repository.h"

/*
 * The user's git configuration, read as git-config(1) does: the system's file, the user's own two
 * or that of GIT_CONFIG_GLOBAL, the repository's, and the files that they include. We do not use
 * libgit2 for it: libgit2 gives up on a file in which a path begins with "~/". And it only finds
 * the user's home if we also let it read the user's configuration for our own repositories.
 */
struct user_setting {
	char *key;   // owned: "section.name" or "section.sub.name"; section and name in lower case
	char *value; // owned; NULL if the key has no value, which means true
	bool is_certain; // false: it depends on a condition that we do not evaluate
};

struct user_config {
	struct user_setting
		*settings; // in file order: of two settings of one key the later one wins
	size_t count;
	char **paths; // owned: the files that exist, NULL-terminated; NULL: none
	/* How much was read so far. */
	size_t files, bytes;
	/*
	 * Set it before the reading. Then files that we may not read (EACCES), and includes whose
	 * path cannot be expanded, count as missing.
	 */
	bool passes_unreadable;
};

/*
 * Keeps, for the whole process, where the environment says that git's configuration is
 * (XDG_CONFIG_HOME, GIT_CONFIG_GLOBAL). Call it before the first thread. Without it these variables
 * count as unset.
 */
void user_config_set_environment(const char *const *environment);

/*
 * Reads all of it into a struct that is zeroed except for passes_unreadable. A missing file is no
 * error. Fails with ERROR_CONFIG if a file cannot be read or parsed, or includes a path that cannot
 * be expanded (of an unknown user, or with %(prefix), which only git knows); fails with ERROR_LIMIT
 * if there are more than 256 files and users' homes, or 4 MiB. After a failure *config has what was
 * read before it. `home` may be NULL, the repository's folders may be "". Blocks.
 */
bool user_config_read(struct user_config *config, const char *home,
	const struct user_repository *repository, struct error *err) ATTR_NODISCARD;

void user_config_finish(struct user_config *config); // also fine for a zeroed one

/* The last certain value; NULL if there is none, "" if the key has no value. */
const char *user_config_get(const struct user_config *config, const char *key);
bool user_config_is_true(const struct user_config *config, const char *key);

/*
 * The file that the setting names or, if it is not set, the file `name` ("attributes", "ignore") in
 * git's folder of the user's configuration; "" if there is no home. Fails if the path cannot be
 * expanded.
 */
bool user_config_file(const struct user_config *config, const char *key, const char *name,
	const char *home, char path[PATH_MAX], struct error *err) ATTR_NODISCARD;

#endif
