/* SPDX-License-Identifier: MIT */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* The value of a variable in a list of "NAME=value"; NULL if it is not set. */
const char *environment_get(const char *const *environment, const char *name);

/*
 * Merges two NULL-terminated lists of "NAME=value". A variable in `additions` replaces the one of
 * the same name, at the same position. All others keep their order.
 */
char **environment_merge(const char *const *base, const char *const *additions);

/* Removes a variable from a list that owns its texts. */
void environment_drop(char **environment, const char *name);

#endif
