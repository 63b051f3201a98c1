/* SPDX-License-Identifier: MIT */
#include "providers/local/net/target.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/text.h"
#include "providers/local/net/ports.h"

/* Finds the name that has this address of our DNS. False: there is none. */
static bool find_name(const struct host_names *names, struct proxy_target *target)
{
	static const struct address_network ours = {
		.address = {.family = AF_INET, .bytes = {198, 18}}, .bits = 15};
	uint32_t value;
	if (!target->is_address || !address_is_in(&target->address, &ours)) {
		return true;
	}
	memcpy(&value, target->address.bytes, sizeof(value));
	const char *name = host_names_find(names, ntohl(value));
	target->is_address = false;
	return name && text_whole(target->name, sizeof(target->name), "%s", name);
}

static bool is_our_gate(const struct proxy_target *target)
{
	const struct address gate = address_from_ipv4(PORTS_GATE_ADDRESS);
	return target->port == PORTS_GATE_PORT && target->is_address &&
	       target->address.family == AF_INET &&
	       memcmp(target->address.bytes, gate.bytes, sizeof(gate.bytes)) == 0;
}

bool target_is_gate(const struct wire_start *start, const struct host_names *names,
	const struct proxy_target *target)
{
	struct proxy_target named = *target;
	return is_our_gate(target) ||
	       (find_name(names, &named) && upstream_is(&start->upstream, &named));
}

static bool is_service(const struct wire_start *start, uint16_t port)
{
	for (uint32_t i = 0; i < start->service_count; i++) {
		if (start->services[i] == port) {
			return true;
		}
	}
	return false;
}

bool target_is_local_name(const struct proxy_target *target)
{
	return !target->is_address &&
	       span_ends_with(span_of(target->name), SPAN_LITERAL(".localhost"));
}

enum target_end target_settle(const struct wire_start *start, const struct host_names *names,
	struct proxy_target *target, enum network_target *out_kind)
{
	if (!find_name(names, target)) {
		return TARGET_UNKNOWN;
	}
	if (upstream_is(&start->upstream, target)) {
		return TARGET_REFUSED;
	}
	if (!proxy_target_is_loopback(target)) {
		*out_kind = target->is_address ? NETWORK_TO_ADDRESS : NETWORK_TO_NAME;
		return TARGET_SETTLED;
	}
	if (!is_service(start, target->port)) {
		return TARGET_REFUSED;
	}
	*out_kind = NETWORK_TO_SERVICE;
	target->is_address = false;
	text_whole(target->name, sizeof(target->name), "localhost");
	return TARGET_SETTLED;
}

bool target_is_reached(const struct wire_start *start, const struct lookup_found *found)
{
	const struct address *address = &found->address;
	enum address_reach reach = address_reach(address);
	bool is_named = false; // a network contains the address
	bool is_alone = false; // a network has only this address
	for (uint32_t i = 0; i < start->network_count; i++) {
		const struct address_network *network = &start->networks[i];
		bool is_in = address_is_in(address, network);
		is_named = is_named || is_in;
		is_alone = is_alone ||
		           (is_in && network->bits == (address->family == AF_INET ? 32 : 128));
	}
	if (found->is_avoided || reach == ADDRESS_NEVER || (found->is_own && !is_alone)) {
		return false;
	}
	return reach == ADDRESS_PUBLIC || is_named;
}

bool target_may_be_asked_for(const struct wire_start *start, const struct lookup_answer *answer)
{
	bool is_any_reached = answer->count == 0;
	for (uint32_t i = 0; i < answer->count; i++) {
		const struct lookup_found *found = &answer->found[i];
		if (target_is_reached(start, found)) {
			is_any_reached = true;
		} else if (found->is_own || address_reach(&found->address) == ADDRESS_NEVER) {
			return false;
		}
	}
	return is_any_reached;
}
