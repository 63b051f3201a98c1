/* SPDX-License-Identifier: MIT */
#include "broker/ledger/state_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/environment.h"
#include "base/hash.h"
#include "base/real_path.h"
#include "broker/config/config.h"

char *state_folder_name(const char *const *environment)
{
	const char *state = environment_get(environment, "XDG_STATE_HOME");
	const char *home = environment_get(environment, "HOME");
	if (state && state[0] == '/') {
		return path_join(state, "acp-broker");
	}
	return home && home[0] == '/' ? path_join(home, ".local/state/acp-broker") : NULL;
}

char *state_folder_store(const char *state_folder, const char *local_root)
{
	char name[32];
	snprintf(name, sizeof(name), "stores/%016" PRIx64, hash_text(HASH_START, local_root));
	return path_join(state_folder, name);
}

const char *state_folder_sandbox(char name[STATE_FOLDER_NAME_SIZE], const char *backend,
	const char *profile, const char *runtime_root, const char *instance)
{
	uint64_t hash = hash_text(hash_text(HASH_START, backend), profile);
	hash = hash_text(hash, runtime_root);
	hash = instance ? hash_text(hash, instance) : hash;
	snprintf(name, STATE_FOLDER_NAME_SIZE, "%016" PRIx64, hash);
	return name;
}
