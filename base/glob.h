/* SPDX-License-Identifier: MIT */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Matches globs against paths, component by component: * is any characters except /, ? is one of
 * them, [a-z] is one character of a set, [!a-z] one that is not in it, and \ takes the next
 * character literally. ** as a whole component is any number of components, including none. A
 * leading dot is an ordinary character; the components . and .. match only themselves. Characters
 * are those of UTF-8. The time is at most proportional to pattern length times text length (for
 * each component that ** may skip).
 */
bool glob_match(const char *pattern, const char *path);

/* The same, but the pattern may begin at any component of the path. */
bool glob_match_anywhere(const char *pattern, const char *path);

/* The same without components: / is an ordinary character. */
bool glob_match_flat(const char *pattern, const char *text);

/*
 * Refuses malformed patterns: a set or a \ without its end, or ** beside other characters of its
 * component.
 */
bool glob_check(const char *pattern, struct error *err) ATTR_NODISCARD;

/*
 * Refuses also patterns that no resolved path can match: empty, . and .. components, a / at the
 * end.
 */
bool glob_check_path(const char *pattern, struct error *err) ATTR_NODISCARD;

#endif
