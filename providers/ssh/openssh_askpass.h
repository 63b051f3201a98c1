/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_ASKPASS_H
#define PROVIDERS_SSH_OPENSSH_ASKPASS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/ssh/target.h"

/*
 * Who answers the questions of an ssh program that has no terminal: what SSH_ASKPASS names. Where
 * the target has a command for a secret, that is a small script of ours which runs it and asks the
 * user's own SSH_ASKPASS for everything else. The secret goes through its stdout alone; in the
 * environment are commands, as the configuration has them.
 */
bool openssh_needs_askpass(const struct ssh_target *target);

/* Writes the script. */
bool openssh_write_askpass(const char *path, struct error *err) ATTR_NODISCARD;

/* Whether ssh may ask at all: by the script, or by the user's own SSH_ASKPASS. */
bool openssh_can_ask(const struct ssh_target *target, const char *const *environment);

/*
 * The broker's environment for ssh: LC_ALL=C, SSH_ASKPASS and what the script wants to know.
 * `script` is not NULL where it is needed. NULL-terminated, owned with its texts (words_free).
 */
char **openssh_env(
	const struct ssh_target *target, const char *const *environment, const char *script);

#endif
