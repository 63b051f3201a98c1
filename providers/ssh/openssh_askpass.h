/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_ASKPASS_H
#define PROVIDERS_SSH_OPENSSH_ASKPASS_H

#include <stdbool.h>
#include <termios.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/ssh/target.h"

/*
 * Answers the questions of an ssh program, which has no terminal of its own, by a small script of
 * ours as SSH_ASKPASS. If the target has a command for a secret, the script runs it. It asks the
 * user for everything else: in the terminal that shows the broker's stderr, or without one by the
 * user's own SSH_ASKPASS. As in ssh, SSH_ASKPASS_REQUIRE=prefer or force puts SSH_ASKPASS first,
 * and SSH_ASKPASS_REQUIRE=never excludes it. Secrets go only through stdout. The environment
 * contains the commands as the configuration has them, but no secret.
 */
bool openssh_needs_askpass(const struct ssh_target *target, const char *const *environment);

/* Writes the script. */
bool openssh_write_askpass(const char *path, struct error *err) ATTR_NODISCARD;

/* Whether the target, or a host on the way, has a command for a secret. */
bool openssh_has_command(const struct ssh_target *target);
/* Whether the user can be asked, in a terminal or by the user's own SSH_ASKPASS. */
bool openssh_has_user(const char *const *environment);
/* Whether anything can answer ssh's questions: a command for a secret, or the user. */
bool openssh_can_ask(const struct ssh_target *target, const char *const *environment);

/*
 * The state of the terminal in which the user is asked, to restore it afterwards: a program that is
 * killed while the user types a secret leaves the terminal without echo.
 */
struct openssh_terminal {
	bool is_kept;
	struct termios settings;
};
void openssh_terminal_keep(struct openssh_terminal *terminal, const char *const *environment);
void openssh_terminal_restore(struct openssh_terminal *terminal); // once, where it was kept

/*
 * The environment for ssh: the broker's, with LC_ALL=C, SSH_ASKPASS and the script's parameters.
 * `script` must be set if openssh_needs_askpass is true. NULL-terminated, owned with its texts
 * (words_free).
 */
char **openssh_env(
	const struct ssh_target *target, const char *const *environment, const char *script);

#endif
