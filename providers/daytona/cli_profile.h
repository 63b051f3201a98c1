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
	char *path; // owned; of the file; NULL: nothing says where it would be
	char *name; // owned; NULL: there is no active profile
	char *url;  // owned; NULL: it has none
	char *key;  // owned, wiped; NULL: it has none
};

/*
 * A file that is not there has no profile. Fails with ERROR_CONFIG where it is no file of this
 * user's alone to write, or no such JSON; then there is nothing to finish. Reads one file of 256
 * KiB at most; for the configuration, which blocks as well.
 */
bool daytona_cli_profile_read(struct daytona_cli_profile *profile, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void daytona_cli_profile_finish(struct daytona_cli_profile *profile); // zeroed is fine

#endif
