/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_PATH_H
#define PROVIDERS_LOCAL_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Appends a slash and a name; false where they do not fit. */
bool path_push(char path[PATH_MAX], const char *name);

/* Takes the last name and its slash off; "" stays "". */
void path_pop(char *path);

/* Whether nothing but slashes and dots that mean nothing is left of a path. */
bool names_are_over(const char *rest);

/* Whether one of the names is "..". */
bool names_go_up(const char *rest);

#endif
