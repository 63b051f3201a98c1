/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_CONTAINER_DEVCONTAINER_MEMBERS_H
#define PROVIDERS_CONTAINER_DEVCONTAINER_MEMBERS_H

#include "base/json_doc.h"
#include "providers/exec/recipe.h"

/*
 * What a devcontainer.json says besides the image: users, variables, volumes, arguments of a build.
 * Only what cannot reach this machine becomes a word of the engine; the rest goes to
 * exec_found.ignored. devcontainer.c uses this, and knows where the file is.
 */
struct devcontainer {
	const struct json_doc *doc;
	const struct exec_place *place;
	struct exec_found *out;
};

/* Sets ERROR_CONFIG: the member is not what was expected. Returns false. */
bool devcontainer_expected(const struct devcontainer *self, const char *member,
	const char *expected, struct error *err);

/* The name may be any text; a question mark stands for one that looks like no name. */
void devcontainer_ignore(const struct devcontainer *self, const char *prefix, struct span name);

/* Names the members of an object that are not among the known ones. */
void devcontainer_ignore_unknown(const struct devcontainer *self, json_node object,
	const char *prefix, const char *const *known);

/* Writes how the broker shows the name; 96 bytes are enough. */
void devcontainer_name(char *out, size_t size, const char *prefix, struct span name);

bool devcontainer_take_start(const struct devcontainer *self, struct error *err) ATTR_NODISCARD;
bool devcontainer_take_build(const struct devcontainer *self, struct error *err) ATTR_NODISCARD;

/* devcontainer_lines.c: commands that run in the container, and ports. */
bool devcontainer_take_lines(const struct devcontainer *self, struct error *err) ATTR_NODISCARD;
bool devcontainer_take_ports(const struct devcontainer *self, struct error *err) ATTR_NODISCARD;

#endif
