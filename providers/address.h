/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_ADDRESS_H
#define PROVIDERS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attr.h"

/*
 * An IPv4 address (AF_INET, the first 4 bytes) or an IPv6 address (AF_INET6), and a network of such
 * addresses.
 */
struct address {
	uint16_t family;
	uint8_t bytes[16];
};

struct address_network {
	struct address address;
	uint8_t bits; // length of the prefix
};

enum { ADDRESS_TEXT_SIZE = 48 };

struct address address_from_ipv4(uint32_t host_order);
bool address_parse(struct address *address, const char *text); // accepts what inet_pton(3) accepts
void address_print(const struct address *address, char out[ADDRESS_TEXT_SIZE]);
/* Reads "10.0.0.0/8"; the length has no leading zeros. */
bool address_parse_network(struct address_network *network, const char *text);
bool address_is_in(const struct address *address, const struct address_network *network);

/* For connect(2) and bind(2); returns the length. */
socklen_t address_name(
	const struct address *address, uint16_t port, struct sockaddr_storage *out_name);
bool address_from_name(struct address *address, const struct sockaddr *name);

/* The IPv4 address that an IPv6 address carries (mapped, NAT64, 6to4); or the address itself. */
struct address address_carried(const struct address *address);

/*
 * How far an address may be trusted, by the IANA registries of special-purpose addresses. An IPv6
 * address that contains an IPv4 address (mapped, NAT64, 6to4) is treated like that one.
 */
enum address_reach {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, // of a private network: only if the profile names that network
	ADDRESS_NEVER,   // loopback, link-local, cloud metadata services, multicast, unassigned
};
enum address_reach address_reach(const struct address *address);

#endif
