/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_NAMES_H
#define BASE_JSON_NAMES_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/*
 * Checks that every JSON reader finds the same members in a text. If an object has two members of
 * one name, some readers take the first and some the last; some also take "PATH" for "path" (Go's
 * encoding/json, cJSON). The broker decides on a message and then passes it on, so that the
 * receiver must not read it differently.
 */
enum { JSON_NAMES_MAX = 1024 }; // members of one object

struct json_name_rules {
	/* NULL-terminated. A name that differs only in case from one of these is refused. */
	const char *const *known;
	/* NULL-terminated, or NULL. Values below members of these names are not checked. */
	const char *const *opaque;
	bool is_flat; // only the members of the outermost object are checked
};

/*
 * Refuses duplicate names in one object, after escapes are decoded, also in objects inside of
 * arrays; a known name in another case; and a name that contains a NUL. These fail with
 * ERROR_PROTOCOL and the reason INVALID_PARAMS; the text has the name. More than JSON_NAMES_MAX
 * members fail with ERROR_LIMIT. The text must have passed json_check.
 */
bool json_names_check(
	struct span text, const struct json_name_rules *rules, struct error *err) ATTR_NODISCARD;

#endif
