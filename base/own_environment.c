/* SPDX-License-Identifier: MIT */
#include "base/own_environment.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>
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

/* Such as HTTPS_PROXY=http://user:password@host. */
static bool has_password(const char *entry, size_t len)
{
	static const char end[] = "_proxy";
	size_t end_len = sizeof(end) - 1;
	return len > end_len && strncasecmp(entry + len - end_len, end, end_len) == 0 &&
	       strchr(entry + len, '@') != NULL;
}

/* NULL stands for every secret. */
static void forget(const char *name)
{
	for (char **entry = environ; *entry; entry++) {
		char *equals = strchr(*entry, '=');
		size_t len = equals ? (size_t)(equals - *entry) : 0;
		bool is_it =
			name ? strlen(name) == len && strncmp(*entry, name, len) == 0
			     : environment_name_is_secret(*entry, len) || has_password(*entry, len);
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
