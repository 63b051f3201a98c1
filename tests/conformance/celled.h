/* SPDX-License-Identifier: MIT */
#ifndef TESTS_CONFORMANCE_CELLED_H
#define TESTS_CONFORMANCE_CELLED_H

#include <stdbool.h>

#include "providers/provider.h"

/*
 * The local provider with the spawner of a cell, which shows the world's folder: its processes are
 * confined, and its file operations are the broker's own. That is how a profile will have it.
 */
struct provider *celled_provider_create(const struct provider_context *context, const char *folder);

/* First thing in main, as nothing that is root is confined: root becomes an ordinary user. */
bool celled_enter(void);

#endif
