/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SSH_LOGIN_ENV_H
#define PROVIDERS_SSH_LOGIN_ENV_H

/*
 * The key login-env: variables of a host's login shell that the agent gets in addition to those
 * that all processes there get (login.c). A value is a name, or "all". "all" leaves out variables
 * that change which code a program runs (LD_*, BASH_ENV, ENV) unless they are named. The shell's
 * own variables (PWD, OLDPWD, SHLVL, _) and ACP_BROKER_* are never taken.
 *
 * There are limits, because the host chooses these variables.
 */
enum {
	LOGIN_ENV_VALUE_MAX = 64 * 1024, // bytes of one NAME=value
	LOGIN_ENV_MAX = 256 * 1024,      // bytes of all together
	LOGIN_ENV_COUNT_MAX = 1024,
};

/*
 * The variables that were taken, and the named ones that were not, by reason. Lists are
 * NULL-terminated or NULL; owned.
 */
struct login_env {
	char **entries; // NAME=value
	char **missing; // names that the shell does not export, or that are never taken
	char **too_big; // names over a limit
};

/*
 * `from` is the login shell's environment; NULL if it reported none. `names` are the values of the
 * key. Variables that `base` already has are not taken again.
 */
void login_env_choose(struct login_env *out_chosen, const char *const *from,
	const char *const *names, const char *const *base);
void login_env_finish(struct login_env *chosen); // wipes the values; zeroed is fine

#endif
