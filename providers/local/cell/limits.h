/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_LIMITS_H
#define PROVIDERS_LOCAL_CELL_LIMITS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Restricts processes in a cell beyond its namespaces. They have no capabilities and cannot gain
 * any by executing a file (no_new_privs, so sudo does not work). They cannot use the system calls
 * of cell/filter.h. If the kernel's Landlock has scopes, they cannot connect to abstract sockets
 * from outside of the cell. Landlock does not restrict files here, because agents with a sandbox of
 * their own could then no longer mount.
 */

/*
 * The version of the kernel's Landlock, or -1 with errno's value. Scopes exist from version
 * LIMITS_SCOPES_SINCE (Linux 6.12) on. Without scopes, a separate network namespace protects the
 * cell in the same way.
 */
enum { LIMITS_SCOPES_SINCE = 6 };
int limits_landlock(int *out_errnum);

/*
 * Makes the filter for limits_apply. Call it while this machine's files are still visible, because
 * it loads a library. NULL on failure.
 */
void *limits_prepare(struct error *err) ATTR_NODISCARD;

/*
 * Permanently restricts the calling process, which must have one thread, and everything it starts.
 * Takes over the filter.
 */
bool limits_apply(void *filter, struct error *err) ATTR_NODISCARD;

/* Brings the loopback up, which is down in a new network namespace. */
bool limits_open_loopback(struct error *err) ATTR_NODISCARD;

#endif
