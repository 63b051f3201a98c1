/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_SOCKETS_H
#define PROVIDERS_LOCAL_CELL_SOCKETS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"

/*
 * Finds the paths at which sockets of this machine were bound, from a copy of /proc/net/unix
 * (proc(5)). Appends each to `out` with a NUL at its end. A relative name is searched in the
 * working folders of our user's processes, which `proc` lists. A path is only a hint: the socket
 * may have been renamed or removed, and anybody can bind a name in a file system of their own. Not
 * found are the sockets of other network namespaces, and relative names of other users' processes
 * and of processes that have left the folder.
 */
bool sockets_find(
	struct span table, const char *proc, struct buf *out, struct error *err) ATTR_NODISCARD;

#endif
