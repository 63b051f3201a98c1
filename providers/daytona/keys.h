/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_KEYS_H
#define PROVIDERS_DAYTONA_KEYS_H

#include "providers/provider.h"

/*
 * API keys that commands print (api-key-command). A command runs once in this process, when its key
 * is first needed, and again if the service refuses that key. The keys stay in memory and are wiped
 * at the end. Loop thread; does not block.
 */
struct daytona_keys {
	const struct provider_context *context; // borrowed
	struct list lines;                      // struct key_line, one for each command
};

void daytona_keys_init(struct daytona_keys *keys, const struct provider_context *context);
void daytona_keys_finish(struct daytona_keys *keys); // after those who wait for a key

struct daytona_key_command {
	struct daytona_keys *keys; // borrowed
	const char *line;          // for /bin/sh
	long long timeout_ms;
};

/*
 * `key` has no blanks around it, and is borrowed while done runs. NULL with err:
 * DAYTONA_KEY_COMMAND or TIMEOUT_EXCEEDED.
 */
typedef void daytona_key_done(void *data, const char *key, const struct error *err);

/*
 * Raises done once, not before it returns, and not after daytona_key_cancel. Several callers share
 * one run of the command. `refused` is a key that the service has refused: if it is the stored one,
 * the command runs again. NULL: none.
 */
struct daytona_key_wait;
struct daytona_key_wait *daytona_key_ask(const struct daytona_key_command *command,
	const char *refused, daytona_key_done *done, void *data);

/* Kills the command if nobody else waits for it. NULL is fine. */
void daytona_key_cancel(struct daytona_key_wait *wait);

#endif
