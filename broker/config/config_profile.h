/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_PROFILE_H
#define BROKER_CONFIG_CONFIG_PROFILE_H

#include "broker/config/config.h"
#include "broker/config/config_file.h"

/*
 * Picks the profile, its agent and its policy from a checked file and the command line. The caller
 * finishes the profile even if this fails.
 */
bool config_profile_load(struct profile *profile, const struct config_file *file,
	const struct options *options, const char *const *environment,
	struct error *err) ATTR_NODISCARD;
void config_profile_finish(struct profile *profile);

/* Fills config.others: every other profile of a checked file, and the built-in one. */
bool config_profile_load_others(struct config *config, const struct config_file *file,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

#endif
