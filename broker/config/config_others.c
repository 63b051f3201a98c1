/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/buf.h"
#include "broker/config/config_profile.h"

static bool load(struct config *config, const struct config_file *file, const char *name,
	const char *const *environment, struct error *err)
{
	struct options options = {.command = COMMAND_SESSIONS_COLLECT, .profile = name};
	if (strcmp(config->profile.name, name) == 0) {
		return true;
	}
	struct profile *profile = &config->others[config->other_count++];
	settings_init(&profile->settings);
	return config_profile_load(profile, file, &options, environment, err);
}

bool config_profile_load_others(struct config *config, const struct config_file *file,
	const char *const *environment, struct error *err)
{
	size_t count = 1;
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		count += section->kind == SECTION_PROFILE;
	}
	/*
	 * One allocation that never moves, because the lists in the settings point to themselves.
	 */
	config->others = mem_alloc_zero(count * sizeof(*config->others));
	LIST_FOR_EACH(section, &file->sections, struct config_section, link) {
		if (section->kind == SECTION_PROFILE &&
			!load(config, file, section->name, environment, err)) {
			return false;
		}
	}
	return config_file_find(file, SECTION_PROFILE, PROFILE_BUILT_IN) != NULL ||
	       load(config, file, PROFILE_BUILT_IN, environment, err);
}
