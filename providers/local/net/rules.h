/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_RULES_H
#define PROVIDERS_LOCAL_NET_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "providers/address.h"
#include "providers/local/net/ports.h"
#include "providers/network.h"

/*
 * Looks up a connection of a cell in a profile's lists. This happens before anything leaves this
 * machine: a name that is not in the lists is not even resolved.
 */

/* The entry of allow-host that allows a name (names_read); NULL: there is none. */
const char *rules_find_name(const struct network_policy *policy, const char *name, uint16_t port);

/* The entry that allows a service of this machine; NULL: there is none. */
const char *rules_find_service(const struct network_policy *policy, uint16_t port);

/*
 * The entry of allow-cidr that allows an address for which the program gave no name; NULL: there is
 * none. No entry allows an address that address_reach never allows.
 */
const char *rules_find_address(const struct network_policy *policy, const struct address *address);

/* Copies the networks of allow-cidr, at most NETWORK_ENTRIES_MAX. Returns their number. */
size_t rules_networks(const struct network_policy *policy, struct address_network *out);

/* Copies the ports of this machine's services, without duplicates. Returns their number. */
size_t rules_services(const struct network_policy *policy, uint16_t out[PORTS_SERVICES_MAX]);

#endif
