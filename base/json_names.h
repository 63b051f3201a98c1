/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_NAMES_H
#define BASE_JSON_NAMES_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Whether every reader of a JSON text finds the same members in it. Of two members of one name some
 * readers take the first and some the last, and some take "PATH" for "path" (Go's encoding/json,
 * cJSON). Who decides on a message and passes it on must not be one of two that disagree.
 */
enum { JSON_NAMES_MAX = 1024 }; // members of one object

struct json_name_rules {
	/* NULL-terminated: a name that differs from one of these only in case is refused. */
	const char *const *known;
	/* NULL-terminated, or NULL: what stands below a member of such a name is not looked at. */
	const char *const *opaque;
	bool is_flat; // only the members of the outermost object are looked at
};

/*
 * Refuses two members of one name in one object, after escapes are decoded, also in objects inside
 * of arrays; a known name in another case; a name with a NUL in it: ERROR_PROTOCOL, reason
 * INVALID_PARAMS, with the name. More than JSON_NAMES_MAX members: ERROR_LIMIT. The text must have
 * passed json_check.
 */
bool json_names_check(
	struct span text, const struct json_name_rules *rules, struct error *err) ATTR_NODISCARD;

#endif
