/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_CLI_PROFILE_H
#define PROVIDERS_DAYTONA_CLI_PROFILE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The active profile of Daytona's own CLI, from its config.json: `{"activeProfile": ID, "profiles":
 * [{"id", "name", "api": {"url", "key", "token"}}]}`. The CLI looks for the file in
 * DAYTONA_CONFIG_DIR, or in daytona/ of the user's configuration (XDG_CONFIG_HOME, ~/.config).
 */
struct daytona_cli_profile {
	char *path; // owned; the file's path; NULL: no variable names its folder
	char *name; // owned; NULL: no active profile
	char *url;  // owned; NULL: none
	char *key;  // owned, wiped; NULL: none
};

/*
 * A missing file has no profile. Fails with ERROR_CONFIG if others than this user may write the
 * file, or its JSON is invalid; then there is nothing to finish. Reads one file of at most 256 KiB;
 * blocks, like the rest of the configuration.
 */
bool daytona_cli_profile_read(struct daytona_cli_profile *profile, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void daytona_cli_profile_finish(struct daytona_cli_profile *profile); // zeroed is fine

#endif
