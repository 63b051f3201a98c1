/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_LIMITS_H
#define PROVIDERS_LOCAL_CELL_LIMITS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * What nobody in a cell may do besides what its namespaces forbid: have a capability, gain one by
 * executing a file (no_new_privs, so that there is no sudo), use the system calls of
 * cell/filter.h, or, where the kernel has Landlock's scopes, connect to an abstract socket that
 * nobody in the cell has made. Landlock does not look at files here: agents that bring a sandbox of
 * their own could not mount any more.
 */

/*
 * The version of the kernel's Landlock, or what errno says. From LIMITS_SCOPES_SINCE on,
 * Linux 6.12, it has scopes. Without them a network of its own does the same.
 */
enum { LIMITS_SCOPES_SINCE = 6 };
int limits_landlock(int *out_errnum);

/* Loads what limits_apply needs, while this machine's files are there. */
bool limits_prepare(struct error *err) ATTR_NODISCARD;

/* For the calling process, which has one thread, and all that it starts; for good. */
bool limits_apply(struct error *err) ATTR_NODISCARD;

/* The loopback of a new network namespace is down. */
bool limits_open_loopback(struct error *err) ATTR_NODISCARD;

#endif
