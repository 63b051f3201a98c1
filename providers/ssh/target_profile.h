/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_PROFILE_H
#define PROVIDERS_SSH_TARGET_PROFILE_H

#include "providers/ssh/target.h"

/*
 * Applies the profile's keys over ssh's settings for a host. For a jump host it applies only
 * ssh-client, auth-timeout and passphrase-command, because these concern every connection. ssh,
 * too, does not apply the options of a host to its jump hosts. Expands `~`.
 */
bool ssh_target_apply(struct ssh_target *target, const struct settings *settings, bool is_hop,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* The value of a key that names a file, with `~` expanded; the caller frees it. NULL: not set. */
bool ssh_profile_path(const struct settings *settings, const char *key,
	const char *const *environment, char **out_path, struct error *err) ATTR_NODISCARD;

#endif
