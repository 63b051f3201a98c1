/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_ADDRESS_H
#define PROVIDERS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attr.h"

/* An address of IPv4 (family AF_INET, the first 4 bytes) or of IPv6 (AF_INET6), and a network. */
struct address {
	uint16_t family;
	uint8_t bytes[16];
};

struct address_network {
	struct address address;
	uint8_t bits; // of the prefix
};

enum { ADDRESS_TEXT_SIZE = 48 };

struct address address_from_ipv4(uint32_t host_order);
bool address_parse(struct address *address, const char *text); // as inet_pton(3)
void address_print(const struct address *address, char out[ADDRESS_TEXT_SIZE]);
/* "10.0.0.0/8"; the length of the prefix has no leading zeros. */
bool address_parse_network(struct address_network *network, const char *text);
bool address_is_in(const struct address *address, const struct address_network *network);

/* For connect(2) and bind(2); returns the length. */
socklen_t address_name(
	const struct address *address, uint16_t port, struct sockaddr_storage *out_name);
bool address_from_name(struct address *address, const struct sockaddr *name);

/*
 * How far an address may be trusted, by the IANA registries of special-purpose addresses. An IPv6
 * address that carries one of IPv4 (mapped, NAT64, 6to4) is as that one.
 */
enum address_reach {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, // of somebody's own network: only where a profile names its network
	ADDRESS_NEVER, // loopback, link-local, metadata services of clouds, multicast, none at all
};
enum address_reach address_reach(const struct address *address);

#endif
