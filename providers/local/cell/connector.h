/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_CONNECTOR_H
#define PROVIDERS_LOCAL_CELL_CONNECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Connections from this machine to programs in a cell that has a network namespace of its own. A
 * process outside asks over a SOCK_SEQPACKET pair, and the cell's first process connects to the
 * cell's loopback and passes the socket out. It connects only to ports that the cell's plan names,
 * so nobody who asks can reach anything else.
 */
struct connector_request {
	uint32_t id;      // repeated in the answer
	uint16_t port;    // one that the plan names
	uint16_t has_ip6; // to ::1 instead of 127.0.0.1
};

/* Carries either a non-blocking socket, which may still be connecting, or an errno. */
struct connector_answer {
	uint32_t id;
	int32_t errnum; // 0: a socket came with it
};

/* Opens the pair: both ends are CLOEXEC and non-blocking. Fails with ERROR_SYSTEM. */
bool connector_open(int out_ends[2], struct error *err) ATTR_NODISCARD;

/*
 * For the process outside; neither function waits. False: the cell takes no request now, or never
 * again.
 */
bool connector_ask(int fd, const struct connector_request *request) ATTR_NODISCARD;

/*
 * 1: there is an answer, and the caller owns *out_socket, which may be -1. 0: there is no answer
 * yet. -1: the cell has ended.
 */
int connector_take(int fd, struct connector_answer *out, int *out_socket) ATTR_NODISCARD;

/*
 * For the cell's first process: answers a few of the waiting requests; call it again for the rest.
 * False: no more requests will come.
 */
bool connector_serve(int fd, const uint16_t *ports, size_t count) ATTR_NODISCARD;

#endif
