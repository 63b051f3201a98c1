/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_SOCKETS_H
#define PROVIDERS_LOCAL_CELL_SOCKETS_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"

/*
 * The paths where sockets of this machine were bound, by its /proc/net/unix (proc(5)): appended to
 * out, each with a NUL at its end. A name that is relative is looked for in the working folders of
 * the processes of our user, in the folder `proc`. A path is a hint: the socket may have been
 * renamed or removed since, and anybody can bind a name in a file system of their own. Not found:
 * sockets of other network namespaces, and relative names of other users' processes, and of
 * processes that have left the folder.
 */
bool sockets_find(
	struct span table, const char *proc, struct buf *out, struct error *err) ATTR_NODISCARD;

#endif
