/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_OPENING_H
#define PROVIDERS_DAYTONA_OPENING_H

#include "providers/daytona/profile.h"
#include "providers/daytona/shared.h"

/*
 * Opens the API of a profile. Its key is known already, or a command prints it (api-key-command),
 * which takes time. Loop thread; does not block.
 */
struct daytona_opening;

/*
 * The opening has ended. The callee owns the API, and the profile has its key; on failure `api` is
 * NULL and err is set.
 */
typedef void daytona_opened(void *data, struct daytona_api *api, const struct error *err);

/*
 * The profile is borrowed until the end. Raises done once, not before it returns, and not after
 * daytona_opening_cancel. Returns NULL with ERROR_CONFIG if it finds a mistake before it has to run
 * the command.
 */
struct daytona_opening *daytona_opening_start(struct daytona_shared *shared,
	struct daytona_profile *profile, daytona_opened *done, void *data,
	struct error *err) ATTR_NODISCARD;

/* Kills the command if nobody else waits for it. NULL is fine. */
void daytona_opening_cancel(struct daytona_opening *opening);

#endif
