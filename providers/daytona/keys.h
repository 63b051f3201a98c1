/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_DAYTONA_KEYS_H
#define PROVIDERS_DAYTONA_KEYS_H

#include "providers/provider.h"

/*
 * The API keys that commands print (api-key-command). A command is run once in this process, when
 * its key is first asked for, and again where the service does not take that key any more. The
 * keys are kept in memory and wiped at the end. Loop thread; does not block.
 */
struct daytona_keys {
	const struct provider_context *context; // borrowed
	struct list lines;                      // of struct key_line, one for each command
};

void daytona_keys_init(struct daytona_keys *keys, const struct provider_context *context);
void daytona_keys_finish(struct daytona_keys *keys); // nobody waits for one any more

struct daytona_key_command {
	struct daytona_keys *keys; // borrowed
	const char *line;          // for /bin/sh
	long long timeout_ms;
};

/*
 * `key` is borrowed while done runs, without blanks around it; NULL with err: DAYTONA_KEY_COMMAND,
 * or TIMEOUT_EXCEEDED.
 */
typedef void daytona_key_done(void *data, const char *key, const struct error *err);

/*
 * Raises done once, not before it returns, and not after daytona_key_cancel. Those who ask while
 * the command runs wait for the same run. `refused` is a key that the service has not taken: where
 * it is the one that is kept, the command is run again. NULL: none.
 */
struct daytona_key_wait;
struct daytona_key_wait *daytona_key_ask(const struct daytona_key_command *command,
	const char *refused, daytona_key_done *done, void *data);

/* Kills the command where nobody else waits for it. NULL is fine. */
void daytona_key_cancel(struct daytona_key_wait *wait);

#endif
