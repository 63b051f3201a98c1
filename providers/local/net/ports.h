/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_PORTS_H
#define PROVIDERS_LOCAL_NET_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * The sockets through which a cell's programs reach the network. They are made in the cell's own
 * network namespace and used outside of it; no process of ours runs in the cell for this.
 *
 * In the cell every IPv4 address is local, and PORTS_GATE is an address of lo (net/nft.h).
 * PORTS_NAMES receives UDP packets to port 53 of any address, PORTS_STREAMS every TCP connection to
 * an address outside of 127.0.0.0/8. The kernel refuses UDP to other ports at once, and all of IPv6
 * except ::1.
 */
enum { PORTS_NAMES, PORTS_STREAMS, PORTS_SERVICES, PORTS_SERVICES_MAX = 16 };
enum { PORTS_MAX = PORTS_SERVICES + PORTS_SERVICES_MAX };

/*
 * The address of the proxy for programs that want one, and of the resolver in the cell's
 * resolv.conf.
 */
#define PORTS_GATE "198.18.0.1"
enum { PORTS_GATE_ADDRESS = 0xc6120001, PORTS_GATE_PORT = 3128 };

/*
 * Needs CAP_NET_ADMIN in the namespace, with the loopback up. `services` are the ports of 127.0.0.1
 * for this machine's services. Their sockets follow the two others in out_fds, which gets
 * PORTS_SERVICES + `count` descriptors, CLOEXEC and non-blocking; the rest is -1. Fails with
 * ERROR_SYSTEM; then nothing is open, and errno is kept.
 */
bool ports_open(const uint16_t *services, size_t count, int out_fds[PORTS_MAX],
	struct error *err) ATTR_NODISCARD;

/*
 * Listens on `count` free ports of 127.0.0.1, in any network namespace, for programs that use a key
 * (keys/holder.h). The sockets are CLOEXEC and non-blocking; the rest is -1. Fails with
 * ERROR_SYSTEM; then nothing is open.
 */
enum { PORTS_KEYS_MAX = 8 };
bool ports_open_keys(size_t count, int out_fds[PORTS_KEYS_MAX], struct error *err) ATTR_NODISCARD;

/* Whether ports_open failed with this errno because the kernel lacks nf_tables. */
bool ports_are_unknown(int errnum);

#endif
