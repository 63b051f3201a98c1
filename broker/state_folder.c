/* SPDX-License-Identifier: MIT */
#include "broker/state_folder.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "broker/config.h"

static char *join(const char *folder, const char *name)
{
	size_t size = strlen(folder) + strlen(name) + 2;
	char *path = mem_alloc(size);
	snprintf(path, size, "%s/%s", folder, name);
	return path;
}

char *state_folder_name(const char *const *environment)
{
	const char *state = environment_get(environment, "XDG_STATE_HOME");
	const char *home = environment_get(environment, "HOME");
	if (state && state[0] == '/') {
		return join(state, "acp-broker");
	}
	return home && home[0] == '/' ? join(home, ".local/state/acp-broker") : NULL;
}
