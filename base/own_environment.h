/* SPDX-License-Identifier: MIT */
#ifndef BASE_OWN_ENVIRONMENT_H
#define BASE_OWN_ENVIRONMENT_H

/*
 * The memory in which the kernel has put this process's environment. /proc/PID/environ shows it for
 * as long as the process lives, whatever setenv(3) and unsetenv(3) do, and so does a core.
 */

/*
 * A copy of all of it, NULL-terminated, the caller's: words_free; then
 * own_environment_forget_secrets. First thing in main.
 */
char **own_environment_take(void);

/*
 * Overwrites the values of variables by whose names they are secrets (environment_name_is_secret),
 * and of the variable of a name. The names stay, because users know processes by them.
 */
void own_environment_forget_secrets(void);
void own_environment_forget(const char *name);

#endif
