/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_PASS_H
#define BASE_FD_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/span.h"

/* Sends descriptors with a packet over a SOCK_SEQPACKET socket of AF_UNIX. */
enum { FD_PASS_MAX = 32 };

/* Sends one packet with 1 to FD_PASS_MAX descriptors. Does not wait. Returns false with errno. */
bool fd_pass(int socket, struct span bytes, const int *fds, size_t count) ATTR_NODISCARD;

/*
 * Calls recvmsg(2) without waiting. The descriptors are CLOEXEC; *out_count of them came. Those
 * beyond `max` (at most FD_PASS_MAX) are closed.
 */
ssize_t fd_take(int socket, void *bytes, size_t size, int *out_fds, size_t max, size_t *out_count);

#endif
