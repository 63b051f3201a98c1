/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_FILTER_H
#define PROVIDERS_LOCAL_CELL_FILTER_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The system calls that nobody in a cell gets, by a seccomp filter: each fails with EPERM. They
 * lead to what no namespace separates (keys, terminals' input, what the kernel runs for others) or
 * have given more than they should too often. Sockets of AF_UNIX and AF_NETLINK are allowed:
 * today's agents end without them. Programs of another architecture get ENOSYS for every call.
 */
bool filter_load_library(struct error *err) ATTR_NODISCARD;

/* For the calling process and all that it starts, after no_new_privs; for good. */
bool filter_apply(struct error *err) ATTR_NODISCARD;

#endif
