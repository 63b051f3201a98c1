/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_CONFIG_FILE_H
#define BROKER_CONFIG_CONFIG_FILE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "base/settings.h"
#include "broker/config/config_keys.h"
#include "broker/config/known_agents.h"
#include "providers/provider.h"

/* One section. Parts of the same section in several places of the file are joined. */
struct config_section {
	struct list link; // config_file.sections
	enum section_kind kind;
	char *name; // NULL if the kind has no names
	struct settings settings;
};

/* A whole configuration file: every section, used or not. */
struct config_file {
	const char *path;     // borrowed; NULL if no path is known
	bool was_read;        // false where the file does not exist
	struct list sections; // of struct config_section
};

void config_file_init(struct config_file *file, const char *path);
void config_file_finish(struct config_file *file);

/* Reads the file at path. A missing file counts as empty. */
bool config_file_read(struct config_file *file, struct error *err) ATTR_NODISCARD;

/*
 * Checks every key of every section, and that each section that a key names exists. ERROR_CONFIG:
 * "FILE: profile.devbox.backend: expected …".
 */
bool config_file_check(struct config_file *file, const struct registry *registry,
	struct error *err) ATTR_NODISCARD;

/* Returns the section, or NULL. `name` is NULL for a kind without names. */
struct config_section *config_file_find(
	const struct config_file *file, enum section_kind kind, const char *name);

/*
 * Like config_file_find, but a missing section is ERROR_CONFIG: "no [agent "x"] in FILE", with the
 * nearest name if one is close. A key that names a section puts its own name before this text.
 */
struct config_section *config_file_need(const struct config_file *file, enum section_kind kind,
	const char *name, struct error *err) ATTR_NODISCARD;

/* What an agent's name stands for: its section, or, without a section, an agent from the table. */
struct config_agent {
	const struct config_section *section; // NULL: no section has the name
	const struct known_agent *known;      // NULL with a section
};

/*
 * ERROR_CONFIG if the name is unknown, with the nearest name if one is close. A key that names an
 * agent puts its own name before this text.
 */
bool config_file_need_agent(const struct config_file *file, const char *name,
	struct config_agent *out_agent, struct error *err) ATTR_NODISCARD;

/*
 * Returns the policy section that applies to a profile, or NULL. `settings` are the profile's; may
 * be NULL.
 */
struct config_section *config_file_policy(
	const struct config_file *file, const char *profile, const struct settings *settings);

#endif
