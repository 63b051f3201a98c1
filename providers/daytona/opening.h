/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_OPENING_H
#define PROVIDERS_DAYTONA_OPENING_H

#include "providers/daytona/profile.h"
#include "providers/daytona/shared.h"

/*
 * The way to a profile's API: its key is there already, or a command prints it (api-key-command),
 * which takes its time. Loop thread; does not block.
 */
struct daytona_opening;

/* The API is the callee's; NULL with err. The profile has its key then. */
typedef void daytona_opened(void *data, struct daytona_api *api, const struct error *err);

/*
 * The profile is borrowed until the end. Raises done once, not before it returns, and not after
 * daytona_opening_cancel. NULL: ERROR_CONFIG, for what is known to be wrong without any command.
 */
struct daytona_opening *daytona_opening_start(struct daytona_shared *shared,
	struct daytona_profile *profile, daytona_opened *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Kills the command where nobody else waits for it. NULL is fine. */
void daytona_opening_cancel(struct daytona_opening *opening);

#endif
