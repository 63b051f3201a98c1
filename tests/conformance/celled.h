/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CELLED_H
#define TESTS_CONFORMANCE_CELLED_H

#include <stdbool.h>

#include "providers/provider.h"

/*
 * The local provider with the spawner of a cell that shows the world's folder: its processes are
 * confined, and its file operations are the broker's own, as with a profile that has `confine`.
 */
struct provider *celled_provider_create(const struct provider_context *context, const char *folder);

/*
 * Call this first in main. If we are root, it becomes an ordinary user, because a process that is
 * root cannot be confined.
 */
bool celled_enter(void);

#endif
