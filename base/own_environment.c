/* SPDX-License-Identifier: MIT */
#include "base/own_environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/settings.h"

char **own_environment_take(void)
{
	size_t count = 0;
	while (environ[count]) {
		count++;
	}
	char **copy = mem_alloc_zero((count + 1) * sizeof(*copy));
	for (size_t i = 0; i < count; i++) {
		copy[i] = mem_strdup(environ[i]);
	}
	own_environment_forget_secrets();
	return copy;
}

/* NULL stands for every name that marks a secret. */
static void forget(const char *name)
{
	for (char **entry = environ; *entry; entry++) {
		char *equals = strchr(*entry, '=');
		size_t len = equals ? (size_t)(equals - *entry) : 0;
		bool is_it = name ? strlen(name) == len && strncmp(*entry, name, len) == 0
		                  : environment_name_is_secret(*entry, len);
		if (equals && is_it) {
			explicit_bzero(equals + 1, strlen(equals + 1));
		}
	}
}

void own_environment_forget_secrets(void)
{
	forget(NULL);
}

void own_environment_forget(const char *name)
{
	forget(name);
}
