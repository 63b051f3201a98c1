/* SPDX-License-Identifier: MIT */
#ifndef BASE_GLOB_H
#define BASE_GLOB_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Globs of paths, component by component: * any characters but /, ? one of
 * them, [a-z] one of a set, [!a-z] one outside it, \ takes the next character
 * as it is. ** as a whole component is any number of components, none too. A
 * leading dot is a character like others; the components . and .. match only
 * themselves. Characters are those of UTF-8. The time is at most proportional
 * to pattern length times text length (for each component that ** may skip).
 */
bool glob_match(const char *pattern, const char *path);

/* The same, the pattern beginning at any component of the path. */
bool glob_match_anywhere(const char *pattern, const char *path);

/* The same without components: / is a character like others. */
bool glob_match_flat(const char *pattern, const char *text);

/*
 * Refuses what cannot be meant: a set or a \ without its end, ** beside other
 * characters of its component.
 */
bool glob_check(const char *pattern, struct error *err) ATTR_NODISCARD;

/* Refuses what no resolved path can match besides: empty, . and .. components, a / at the end. */
bool glob_check_path(const char *pattern, struct error *err) ATTR_NODISCARD;

#endif
