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
 * Translates the paths of a message that passes between an editor here and an
 * agent whose roots are elsewhere. Only the places of one table are touched
 * (docs/architecture.md, "The edits"); free text, rawInput, rawOutput and titles
 * never. `method` is the message's own, or of a response that of its request.
 * Only the part of a path that names the root is replaced. ERROR_LIMIT where
 * there are more paths than a splice takes.
 */
bool rewrite_paths(const struct path_map *map, enum path_direction direction,
	const struct message *message, const char *method, struct splice *splice,
	struct error *err) ATTR_NODISCARD;

/*
 * The same of one string of the message that no table has: a path, at the hit's
 * place with its quotes.
 */
bool rewrite_path(const struct path_map *map, enum path_direction direction,
	const struct message *message, const struct json_hit *hit, struct splice *splice,
	struct error *err) ATTR_NODISCARD;

#endif
