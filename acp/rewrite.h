/* SPDX-License-Identifier: MIT */
#ifndef ACP_REWRITE_H
#define ACP_REWRITE_H

#include <stdbool.h>

#include "acp/message.h"
#include "acp/path_map.h"
#include "acp/splice.h"
#include "base/attr.h"
#include "base/error.h"

/*
 * Translates the paths of a message between a local editor and an agent whose roots are elsewhere.
 * Touches only the places of one table (docs/architecture.md, "The edits"), never free text,
 * rawInput, rawOutput or titles. `method` is the message's method or, for a response, the method of
 * its request. Replaces only the part of a path that names the root. ERROR_LIMIT if there are more
 * paths than a splice can hold.
 */
bool rewrite_paths(const struct path_map *map, enum path_direction direction,
	const struct message *message, const char *method, struct splice *splice,
	struct error *err) ATTR_NODISCARD;

/* The same for one string that is in no table: a path, at the hit's place, with its quotes. */
bool rewrite_path(const struct path_map *map, enum path_direction direction,
	const struct message *message, const struct json_hit *hit, struct splice *splice,
	struct error *err) ATTR_NODISCARD;

#endif
