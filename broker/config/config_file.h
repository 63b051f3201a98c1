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

/* One section; a section written in several places is one. */
struct config_section {
	struct list link; // config_file.sections
	enum section_kind kind;
	char *name; // NULL where the kind has none
	struct settings settings;
};

/* A whole configuration file: every section, used or not. */
struct config_file {
	const char *path;     // borrowed; NULL where there is no place to look
	bool was_read;        // false where the file does not exist
	struct list sections; // of struct config_section
};

void config_file_init(struct config_file *file, const char *path);
void config_file_finish(struct config_file *file);

/* Reads the file at path; one that does not exist is an empty one. */
bool config_file_read(struct config_file *file, struct error *err) ATTR_NODISCARD;

/*
 * Checks every key of every section, and that what a section names is there.
 * ERROR_CONFIG: "FILE: profile.devbox.backend: expected …".
 */
bool config_file_check(struct config_file *file, const struct registry *registry,
	struct error *err) ATTR_NODISCARD;

/* The section, or NULL. `name` is NULL for a kind without names. */
struct config_section *config_file_find(
	const struct config_file *file, enum section_kind kind, const char *name);

/*
 * As config_file_find; a section that is missing is ERROR_CONFIG: "no [agent
 * "x"] in FILE", with a near name where there is one. Keys that name a section
 * prefix it with their own name.
 */
struct config_section *config_file_need(const struct config_file *file, enum section_kind kind,
	const char *name, struct error *err) ATTR_NODISCARD;

/* What the name of an agent stands for: its section, or without one an agent that is known. */
struct config_agent {
	const struct config_section *section; // NULL: there is none
	const struct known_agent *known;      // NULL with a section
};

/*
 * ERROR_CONFIG where the name stands for nothing, with a near name where there is one. Keys that
 * name an agent prefix it with their own name.
 */
bool config_file_need_agent(const struct config_file *file, const char *name,
	struct config_agent *out_agent, struct error *err) ATTR_NODISCARD;

/* The policy section that applies to a profile, or NULL; the profile's settings may be NULL. */
struct config_section *config_file_policy(
	const struct config_file *file, const char *profile, const struct settings *settings);

#endif
