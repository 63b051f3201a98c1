/* SPDX-License-Identifier: MIT */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <limits.h>
#include <stdbool.h>

/* Appends a slash and a name; false if they do not fit. */
bool path_push(char path[PATH_MAX], const char *name);

/* Removes the last name and its slash; "" stays "". */
void path_pop(char *path);

/* Whether only slashes and dots without a meaning are left of a path. */
bool names_are_over(const char *rest);

/* Whether one of the names is "..". */
bool names_go_up(const char *rest);

/* The path with single slashes, without "." and without a slash at its end. */
void path_clean(const char *path, char out[PATH_MAX]);

#endif
