/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_ARGV_H
#define PROVIDERS_SSH_OPENSSH_ARGV_H

#include "providers/ssh/target.h"

/*
 * The arguments of the ssh program that makes the connection and listens at the control path. The
 * environment decides whether it can ask the user. The user's ssh_config applies (-F, and the alias
 * as host); the target's settings override it. It reaches each host on the way by a separate ssh
 * program, with the options of that host's target. NULL-terminated; the caller frees it with
 * words_free.
 */
char **openssh_argv(
	const struct ssh_target *target, const char *const *environment, const char *control_path);

#endif
