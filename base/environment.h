/* SPDX-License-Identifier: MIT */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* The value of a variable in a list of "NAME=value"; NULL where it is not set. */
const char *environment_get(const char *const *environment, const char *name);

/*
 * An environment with additions: NULL-terminated "NAME=value" lists. A name
 * that is added replaces the one that was there, in its place; the rest keeps its order.
 */
char **environment_merge(const char *const *base, const char *const *additions);

/* Takes a variable out of a list whose texts are owned. */
void environment_drop(char **environment, const char *name);

#endif
