/* SPDX-License-Identifier: MIT */
#ifndef BASE_GUARD_REQUEST_H
#define BASE_GUARD_REQUEST_H

#include <sys/types.h>

#include "base/attr.h"
#include "base/guard.h"
#include "base/spawner_child.h"

/* Forks a spawner, and sends it requests, in the broker and in the runner. */

/* Forks a spawner that uses sockets[1]; the caller closes that end. Returns -1 with errno. */
pid_t guard_fork_spawner(const int sockets[2], enum nest_kind kind) ATTR_NODISCARD;

/*
 * Sends a request with its file descriptors (-1: none). If hundreds are queued, waits for at most a
 * second. Returns 0, or an errno.
 */
int guard_request_send(int socket, const struct guard_request *request,
	const int fds[GUARD_FDS_MAX]) ATTR_NODISCARD;

#endif
