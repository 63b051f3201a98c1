/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_ARGV_H
#define PROVIDERS_SSH_OPENSSH_ARGV_H

#include "providers/ssh/target.h"

/*
 * The words of the ssh program that makes the connection and listens at the control path; the
 * environment decides whether anybody can be asked. The user's own ssh_config counts (-F, the
 * alias as host), and what the target says stands above it. Hosts on the way are reached by
 * ssh programs of their own, so that each has the options of its own target.
 * NULL-terminated, owned with its texts (words_free).
 */
char **openssh_argv(
	const struct ssh_target *target, const char *const *environment, const char *control_path);

#endif
