/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_KEYS_PROFILE_KEYS_H
#define PROVIDERS_LOCAL_KEYS_PROFILE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"
#include "providers/local/net/host_names.h"

/*
 * The value of `key` in a profile: "NAME", or "NAME for https://HOST[:PORT][/PATH]". NAME is a
 * variable of the broker's environment. In the cell this variable contains a placeholder, and
 * another variable contains the address at which programs reach the host with the key
 * (keys/holder.h).
 */
enum {
	KEYS_MAX = 8,
	KEY_NAME_SIZE = 128,
	KEY_PATH_SIZE = 256,
	KEY_URL_SIZE = NAME_SIZE + KEY_PATH_SIZE + 32,
};

struct profile_key {
	char name[KEY_NAME_SIZE];         // the variable with the key
	char url_name[KEY_NAME_SIZE + 8]; // the variable with the address
	char host[NAME_SIZE];             // in the form of host_name_read
	uint16_t port;
	char path[KEY_PATH_SIZE]; // "", or "/v1": only paths below it are allowed
	char url[KEY_URL_SIZE];   // the whole URL, as users write it
	const char *header;       // header for the key; NULL: "Authorization: Bearer"
};

bool profile_keys_are_wanted(const struct settings *settings);

/*
 * Reads all keys of a profile; `environment` is the broker's, or NULL. ERROR_CONFIG names the wrong
 * line. It is also an error if the profile gives the agent the key in another way, and if a known
 * key has no address here but the environment has one: the key would then be sent to another server
 * than before.
 */
bool profile_keys_read(const struct settings *settings, const char *const *environment,
	struct profile_key out[KEYS_MAX], size_t *out_count, struct error *err) ATTR_NODISCARD;

#endif
