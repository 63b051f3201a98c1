/* SPDX-License-Identifier: MIT */
#include "providers/local/net/rules.h"

#include <assert.h>

const char *rules_find_name(const struct network_policy *policy, const char *name, uint16_t port)
{
	for (char **entry = policy->hosts; *entry; entry++) {
		struct network_host host;
		if (network_host_read(&host, *entry) && network_host_has(&host, name, port)) {
			return *entry;
		}
	}
	return NULL;
}

const char *rules_find_service(const struct network_policy *policy, uint16_t port)
{
	for (char **entry = policy->hosts; *entry; entry++) {
		struct network_host host;
		if (network_host_read(&host, *entry) && host.is_service && host.port == port) {
			return *entry;
		}
	}
	return NULL;
}

const char *rules_find_address(const struct network_policy *policy, const struct address *address)
{
	if (address_reach(address) == ADDRESS_NEVER) {
		return NULL;
	}
	for (char **entry = policy->cidrs; *entry; entry++) {
		struct address_network network;
		if (address_parse_network(&network, *entry) && address_is_in(address, &network)) {
			return *entry;
		}
	}
	return NULL;
}

size_t rules_networks(const struct network_policy *policy, struct address_network *out)
{
	size_t count = 0;
	for (char **entry = policy->cidrs; *entry; entry++) {
		assert(count < NETWORK_ENTRIES_MAX);
		count += address_parse_network(&out[count], *entry);
	}
	return count;
}

size_t rules_services(const struct network_policy *policy, uint16_t out[PORTS_SERVICES_MAX])
{
	size_t count = 0;
	for (char **entry = policy->hosts; *entry; entry++) {
		struct network_host host;
		if (network_host_read(&host, *entry) && host.is_service) {
			assert(count < PORTS_SERVICES_MAX); // network_abilities.services_max
			out[count++] = host.port;
		}
	}
	return count;
}
