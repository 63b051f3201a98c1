/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PORTS_H
#define PROVIDERS_LOCAL_NET_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The sockets through which a cell's programs reach the network: made in the cell's own network
 * namespace, used outside of it. Nothing of ours runs in the cell for this.
 *
 * Every IPv4 address is local there, and PORTS_GATE is one of lo's (net/nft.h). PORTS_NAMES gets
 * what is sent by UDP to port 53 of any address, PORTS_STREAMS every TCP connection to an address
 * outside of 127.0.0.0/8. UDP to another port is refused by the kernel at once, and so is all of
 * IPv6 but ::1.
 */
enum { PORTS_NAMES, PORTS_STREAMS, PORTS_SERVICES, PORTS_SERVICES_MAX = 16 };
enum { PORTS_MAX = PORTS_SERVICES + PORTS_SERVICES_MAX };

/* Where a program that wants a proxy finds one, and the resolver of the cell's resolv.conf. */
#define PORTS_GATE "198.18.0.1"
enum { PORTS_GATE_ADDRESS = 0xc6120001, PORTS_GATE_PORT = 3128 };

/*
 * For who has CAP_NET_ADMIN in the namespace; its loopback is up. `services` are ports of
 * 127.0.0.1 that somebody listens on for this machine's services; their sockets follow the two
 * others in out_fds, which gets PORTS_SERVICES + `count` descriptors, CLOEXEC and non-blocking; the
 * rest is -1. Fails with ERROR_SYSTEM, nothing open and errno kept.
 */
bool ports_open(const uint16_t *services, size_t count, int out_fds[PORTS_MAX],
	struct error *err) ATTR_NODISCARD;

/* Whether ports_open failed with this errno because the kernel has no nf_tables. */
bool ports_are_unknown(int errnum);

#endif
