/* SPDX-License-Identifier: MIT */
#include "providers/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct address address_from_ipv4(uint32_t host_order)
{
	struct address address = {.family = AF_INET};
	uint32_t value = htonl(host_order);
	memcpy(address.bytes, &value, sizeof(value));
	return address;
}

bool address_parse(struct address *address, const char *text)
{
	*address = (struct address){.family = strchr(text, ':') ? AF_INET6 : AF_INET};
	return inet_pton(address->family, text, address->bytes) == 1;
}

void address_print(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
	if (!inet_ntop(address->family, address->bytes, out, ADDRESS_TEXT_SIZE)) {
		out[0] = '\0';
	}
}

/* Reads the length of the prefix: decimal, without leading zeros. */
static bool read_bits(const char *text, unsigned max, uint8_t *out_bits)
{
	size_t len = strlen(text);
	if (len == 0 || len > 3 || strspn(text, "0123456789") != len ||
		(text[0] == '0' && len > 1)) {
		return false;
	}
	unsigned bits = (unsigned)strtoul(text, NULL, 10);
	*out_bits = (uint8_t)bits;
	return bits <= max;
}

bool address_parse_network(struct address_network *network, const char *text)
{
	char address[ADDRESS_TEXT_SIZE];
	const char *slash = strchr(text, '/');
	return slash && text_whole(address, sizeof(address), "%.*s", (int)(slash - text), text) &&
	       address_parse(&network->address, address) &&
	       read_bits(slash + 1, network->address.family == AF_INET ? 32 : 128, &network->bits);
}

static bool bytes_begin(const uint8_t *bytes, const uint8_t *prefix, unsigned bits)
{
	unsigned whole = bits / 8;
	unsigned rest = bits % 8;
	return memcmp(bytes, prefix, whole) == 0 &&
	       (rest == 0 || ((bytes[whole] ^ prefix[whole]) >> (8 - rest)) == 0);
}

bool address_is_in(const struct address *address, const struct address_network *network)
{
	return address->family == network->address.family &&
	       bytes_begin(address->bytes, network->address.bytes, network->bits);
}

socklen_t address_name(
	const struct address *address, uint16_t port, struct sockaddr_storage *out_name)
{
	*out_name = (struct sockaddr_storage){.ss_family = address->family};
	if (address->family == AF_INET) {
		struct sockaddr_in *name = (struct sockaddr_in *)(void *)out_name;
		name->sin_port = htons(port);
		memcpy(&name->sin_addr, address->bytes, sizeof(name->sin_addr));
		return sizeof(*name);
	}
	struct sockaddr_in6 *name = (struct sockaddr_in6 *)(void *)out_name;
	name->sin6_port = htons(port);
	memcpy(&name->sin6_addr, address->bytes, sizeof(name->sin6_addr));
	return sizeof(*name);
}

bool address_from_name(struct address *address, const struct sockaddr *name)
{
	*address = (struct address){.family = name->sa_family};
	if (name->sa_family == AF_INET) {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)name;
		memcpy(address->bytes, &four->sin_addr, sizeof(four->sin_addr));
		return true;
	}
	if (name->sa_family != AF_INET6) {
		return false;
	}
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)name;
	memcpy(address->bytes, &six->sin6_addr, sizeof(six->sin6_addr));
	return six->sin6_scope_id == 0; // an address with a scope is only valid on one link
}

/* ---- reach ---- */

struct special {
	enum address_reach reach;
	uint8_t bits;
	uint8_t bytes[16];
};

/* The first match counts. */
static const struct special specials4[] = {
	{ADDRESS_NEVER, 8, {0}},                   // this network
	{ADDRESS_NEVER, 8, {127}},                 // loopback
	{ADDRESS_NEVER, 16, {169, 254}},           // link-local, with metadata services
	{ADDRESS_NEVER, 32, {100, 100, 100, 200}}, // a metadata service
	{ADDRESS_NEVER, 32, {168, 63, 129, 16}},   // a metadata service
	{ADDRESS_NEVER, 32, {192, 0, 0, 192}},     // a metadata service
	{ADDRESS_NEVER, 4, {224}},                 // multicast
	{ADDRESS_NEVER, 4, {240}},                 // reserved, broadcast
	{ADDRESS_PRIVATE, 8, {10}},                // private
	{ADDRESS_PRIVATE, 10, {100, 64}},          // shared by a provider's customers
	{ADDRESS_PRIVATE, 12, {172, 16}},          // private
	{ADDRESS_PRIVATE, 24, {192, 0, 0}},        // protocol assignments
	{ADDRESS_PRIVATE, 24, {192, 0, 2}},        // documentation
	{ADDRESS_PRIVATE, 24, {192, 88, 99}},      // 6to4 relays
	{ADDRESS_PRIVATE, 16, {192, 168}},         // private
	{ADDRESS_PRIVATE, 15, {198, 18}},          // benchmarks, and ours in a cell
	{ADDRESS_PRIVATE, 24, {198, 51, 100}},     // documentation
	{ADDRESS_PRIVATE, 24, {203, 0, 113}},      // documentation
};
static const struct special specials6[] = {
	{ADDRESS_NEVER, 128, {[15] = 1}},                                         // loopback
	{ADDRESS_NEVER, 128, {0}},                                                // none
	{ADDRESS_NEVER, 10, {0xfe, 0x80}},                                        // link-local
	{ADDRESS_NEVER, 8, {0xff}},                                               // multicast
	{ADDRESS_NEVER, 128, {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}}, // metadata
	{ADDRESS_NEVER, 128, {0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54}}, // metadata
	{ADDRESS_PRIVATE, 7, {0xfc}},                                             // private
	{ADDRESS_PRIVATE, 10, {0xfe, 0xc0}},             // site-local, deprecated
	{ADDRESS_PRIVATE, 23, {0x20, 0x01}},             // protocol assignments, including Teredo
	{ADDRESS_PRIVATE, 32, {0x20, 0x01, 0x0d, 0xb8}}, // documentation
	{ADDRESS_PRIVATE, 20, {0x3f, 0xff}},             // documentation
};

/* Where an IPv6 address with such a prefix contains an IPv4 address. */
static const struct {
	uint8_t bits;
	uint8_t at;
	uint8_t bytes[16];
} carriers[] = {
	{96, 12, {[10] = 0xff, [11] = 0xff}}, // mapped
	{96, 12, {0x00, 0x64, 0xff, 0x9b}},   // NAT64
	{96, 12, {0}},                        // IPv4-compatible, deprecated
	{16, 2, {0x20, 0x02}},                // 6to4
};

struct address address_carried(const struct address *address)
{
	struct address inner = {.family = AF_INET};
	for (size_t i = 0; address->family == AF_INET6 && i < ARRAY_LENGTH(carriers); i++) {
		if (bytes_begin(address->bytes, carriers[i].bytes, carriers[i].bits)) {
			memcpy(inner.bytes, address->bytes + carriers[i].at, 4);
			return inner;
		}
	}
	return *address;
}

static enum address_reach find(
	const struct special *specials, size_t count, const struct address *address)
{
	for (size_t i = 0; i < count; i++) {
		if (bytes_begin(address->bytes, specials[i].bytes, specials[i].bits)) {
			return specials[i].reach;
		}
	}
	return ADDRESS_PUBLIC;
}

enum address_reach address_reach(const struct address *address)
{
	if (address->family == AF_INET) {
		return find(specials4, ARRAY_LENGTH(specials4), address);
	}
	enum address_reach reach = find(specials6, ARRAY_LENGTH(specials6), address);
	struct address inner = address_carried(address);
	if (reach == ADDRESS_PUBLIC && inner.family == AF_INET) {
		return address_reach(&inner);
	}
	/* Addresses that are neither listed nor in 2000::/3 are not on the Internet. */
	return reach == ADDRESS_PUBLIC && address->bytes[0] >> 5 != 1 ? ADDRESS_PRIVATE : reach;
}
