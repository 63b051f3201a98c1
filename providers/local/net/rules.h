/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_RULES_H
#define PROVIDERS_LOCAL_NET_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "providers/address.h"
#include "providers/local/net/ports.h"
#include "providers/network.h"

/*
 * What a profile's lists say about one connection of a cell. They are asked before anything leaves
 * this machine: a name that they do not have is not even looked up.
 */

/* The entry that allows a name (names_read), as allow-host has it; NULL: none does. */
const char *rules_find_name(const struct network_policy *policy, const char *name, uint16_t port);

/* The entry that allows a service of this machine; NULL: none does. */
const char *rules_find_service(const struct network_policy *policy, uint16_t port);

/*
 * The entry of allow-cidr that allows an address of which the program has said no name; NULL: none
 * does. Nothing allows what address_reach says is never reached.
 */
const char *rules_find_address(const struct network_policy *policy, const struct address *address);

/* The networks of allow-cidr; at most NETWORK_ENTRIES_MAX. Returns how many. */
size_t rules_networks(const struct network_policy *policy, struct address_network *out);

/* The ports of this machine's services, each once. Returns how many. */
size_t rules_services(const struct network_policy *policy, uint16_t out[PORTS_SERVICES_MAX]);

#endif
