/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_TARGET_PROFILE_H
#define PROVIDERS_SSH_TARGET_PROFILE_H

#include "providers/ssh/target.h"

/*
 * The keys of a profile above what ssh says of a host. Of a hop on the way only what
 * holds for every connection: the client, the deadlines of logging in and the passphrase;
 * ssh does not apply a host's options to its jump hosts either. `~` is expanded.
 */
bool ssh_target_apply(struct ssh_target *target, const struct settings *settings, bool is_hop,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* The text of a key that is the name of a file, `~` expanded, to be freed; NULL: not set. */
bool ssh_profile_path(const struct settings *settings, const char *key,
	const char *const *environment, char **out_path, struct error *err) ATTR_NODISCARD;

#endif
