/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_COPY_HOME_H
#define PROVIDERS_LOCAL_COPY_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/provider.h"

/*
 * The folder of a profile's copies: COPIES/PROFILE, or COPIES/PROFILE.KEY for the copies of a
 * single session. A broker holds a shared lock on such a folder while it uses it.
 */
enum { COPY_KEY_DIGITS = 16 };

struct copy_home {
	char path[PATH_MAX];
	size_t common;                 // length without ".KEY"
	char key[COPY_KEY_DIGITS + 1]; // "" if all sessions share the copies
	int fd;                        // holds the lock of a single session's folder; or -1
};

bool copy_home_is_key(const char *text);

/* Switches to the copies of one session. False if a broker never makes such a key. */
bool copy_home_set_key(struct copy_home *home, const char *key) ATTR_NODISCARD;

bool copy_home_make(struct copy_home *home, struct error *err) ATTR_NODISCARD;

/*
 * Finds the folder for a sandbox that is being prepared: the folder that the request's reference
 * names (which is not created), the folder of a new session, or the shared one. `name` stands for
 * PROFILE.
 */
bool copy_home_open(struct copy_home *home, const char *state_folder, uint64_t name,
	const struct sandbox_request *request, struct error *err) ATTR_NODISCARD;

/*
 * Switches to the copies of another session and makes their folder; *out_old receives the old
 * value.
 */
bool copy_home_take_over(
	struct copy_home *home, const char *key, struct copy_home *out_old) ATTR_NODISCARD;

/* Releases the folder. Removes it if it is empty and belongs to a single session. */
void copy_home_leave(struct copy_home *home);

#endif
