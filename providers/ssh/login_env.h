/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LOGIN_ENV_H
#define PROVIDERS_SSH_LOGIN_ENV_H

/*
 * The key login-env: variables of the login shell on a host that the agent has besides those that
 * all processes there have (login.c). A name, or "all". With "all" the variables that change which
 * code a program runs are left out - LD_*, BASH_ENV, ENV -, unless they are named. What a shell
 * keeps for itself (PWD, OLDPWD, SHLVL, _) and the broker's own ACP_BROKER_* are never taken.
 *
 * A host writes these: there are limits.
 */
enum {
	LOGIN_ENV_VALUE_MAX = 64 * 1024, // bytes of one NAME=value
	LOGIN_ENV_MAX = 256 * 1024,      // of all of them
	LOGIN_ENV_COUNT_MAX = 1024,
};

/* What was taken, and what of the named was not, and why. NULL-terminated or NULL; owned. */
struct login_env {
	char **entries; // NAME=value
	char **missing; // names that the login shell does not export, or that are never taken
	char **too_big; // names that meet a limit
};

/*
 * `from` is the login shell's environment, NULL where it did not tell one; `names` the values of
 * the key. What `base` has already is not taken again.
 */
void login_env_choose(struct login_env *out_chosen, const char *const *from,
	const char *const *names, const char *const *base);
void login_env_finish(struct login_env *chosen); // wipes the values; zeroed is fine

#endif
