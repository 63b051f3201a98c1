/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_OPENSSH_ASKPASS_H
#define PROVIDERS_SSH_OPENSSH_ASKPASS_H

#include <stdbool.h>
#include <termios.h>

#include "base/attr.h"
#include "base/error.h"
#include "providers/ssh/target.h"

/*
 * Who answers the questions of an ssh program, which has no terminal of its own: a small script
 * of ours, as SSH_ASKPASS. It runs the target's command for a secret, where there is one, and
 * asks the user for everything else: in the terminal where the user sees what the broker
 * writes to stderr, otherwise by the user's own SSH_ASKPASS. As ssh itself: SSH_ASKPASS comes first
 * with SSH_ASKPASS_REQUIRE=prefer or force, and not at all with never. A secret goes through
 * stdout alone; in the environment are commands, as the configuration has them.
 */
bool openssh_needs_askpass(const struct ssh_target *target, const char *const *environment);

/* Writes the script. */
bool openssh_write_askpass(const char *path, struct error *err) ATTR_NODISCARD;

/* Whether the target, or a host on the way, has a command for a secret. */
bool openssh_has_command(const struct ssh_target *target);
/* Whether there is somebody to ask: in a terminal, or by the user's own SSH_ASKPASS. */
bool openssh_has_user(const char *const *environment);
/* Whether ssh may ask at all: a command for a secret, or somebody. */
bool openssh_can_ask(const struct ssh_target *target, const char *const *environment);

/*
 * The terminal in which is asked, before and after: whoever is killed while a secret is typed
 * leaves a terminal that does not show what is typed next.
 */
struct openssh_terminal {
	bool is_kept;
	struct termios settings;
};
void openssh_terminal_keep(struct openssh_terminal *terminal, const char *const *environment);
void openssh_terminal_restore(struct openssh_terminal *terminal); // once, where it was kept

/*
 * The broker's environment for ssh: LC_ALL=C, SSH_ASKPASS and what the script wants to know.
 * `script` is not NULL where it is needed. NULL-terminated, owned with its texts (words_free).
 */
char **openssh_env(
	const struct ssh_target *target, const char *const *environment, const char *script);

#endif
