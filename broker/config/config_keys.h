/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_KEYS_H
#define BROKER_CONFIG_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/settings.h"

#define PROFILE_BUILT_IN "local" // the profile that exists without a section

/* The sections of a configuration file and the keys of each. No other place lists them. */
enum section_kind {
	SECTION_BROKER,
	SECTION_AGENT,
	SECTION_PROFILE, // its table lacks the keys of the profile's provider
	SECTION_POLICY,
	SECTION_MCP,
	SECTION_KIND_COUNT,
};

const char *section_kind_name(enum section_kind kind);
bool section_kind_parse(const char *name, enum section_kind *out_kind);
bool section_kind_is_named(enum section_kind kind); // [agent "NAME"]; otherwise [broker]
const struct setting_key *section_keys(enum section_kind kind, size_t *out_count);

/* Returns the key with that name; it must exist. */
const struct setting_key *section_key(enum section_kind kind, const char *name);

#endif
