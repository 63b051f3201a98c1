/* SPDX-License-Identifier: MIT */
#ifndef BASE_OWN_ENVIRONMENT_H
#define BASE_OWN_ENVIRONMENT_H

/*
 * The memory in which the kernel put this process's environment. /proc/PID/environ shows it while
 * the process lives, whatever setenv(3) and unsetenv(3) do; a core dump contains it too.
 */

/*
 * A copy of all of it, NULL-terminated; the caller frees it with words_free. Take it first in main,
 * then call own_environment_forget_secrets.
 */
char **own_environment_take(void);

/*
 * Overwrites the values of the variables whose names mark them as secrets
 * (environment_name_is_secret) and of proxies with a password, or of one variable. The names stay,
 * because users identify processes by them.
 */
void own_environment_forget_secrets(void);
void own_environment_forget(const char *name);

#endif
