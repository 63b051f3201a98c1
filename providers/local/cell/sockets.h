/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_SOCKETS_H
#define PROVIDERS_LOCAL_CELL_SOCKETS_H

#include <stdbool.h>

#include "base/span.h"

/*
 * The paths of a /proc/net/unix (proc(5)), each as often as it stands there, until one call of
 * `each` says false: then that is returned. What has no path, or none from the root, is left out.
 */
bool sockets_for_each(struct span table, bool (*each)(void *data, const char *path), void *data);

#endif
