/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_FLOW_H
#define PROVIDERS_LOCAL_NET_FLOW_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "providers/local/net/lookup.h"
#include "providers/local/net/host_names.h"
#include "providers/local/net/proxy.h"
#include "providers/local/net/wire.h"

/*
 * The connections of a cell's programs, in the relaying process. Each has these states:
 *
 *    reading (a proxy's head) → deciding → resolving → connecting → (asking →) relaying
 *
 * A connection that does not use the proxy begins with deciding. Nothing leaves this machine before
 * the broker has allowed the connection. Then the name is resolved, its addresses are checked, and
 * exactly these addresses are tried, without waiting for the program's first bytes. Up to PIPE_SIZE
 * bytes from the program are kept meanwhile.
 *
 * If this machine has a proxy for the target (net/upstream.h), the proxy's name is resolved
 * instead, and the proxy is asked to connect. An address without a name is checked as before. If
 * that proxy is on this machine, the name is looked up here first, and it must not lead to what
 * only this machine reaches (target_may_be_asked_for).
 */
struct flows;

enum {
	FLOW_HEAD_MS = 10000, // for the request to the proxy
	FLOW_LOOKUP_MS = 30000,
	FLOW_CHECK_MS = 5000,    // for a name that only a proxy may know
	FLOW_CONNECT_MS = 20000, // for the last address
	FLOW_NEXT_MS = 3000,     // for each earlier address
	FLOW_ASK_MS = 60000,     // for the proxy's answer
};

struct flows_listener {
	/*
	 * Messages for the broker: WIRE_ASK to WIRE_LIMIT; at most FLOW_MESSAGES_MAX for each
	 * connection.
	 */
	void (*on_message)(void *data, const struct wire_message *message);
	/* Returns false if it cannot hand on the request now; then the connection is refused. */
	bool (*on_lookup)(void *data, const struct lookup_request *request);
};
enum { FLOW_MESSAGES_MAX = 3 };

/* Everything is borrowed until the end. */
struct flows *flows_create(struct ev_loop *loop, struct host_names *names,
	const struct wire_start *start, const struct flows_listener *listener, void *data);
void flows_destroy(struct flows *flows); // NULL is fine

/* The number of connections, at most NETWORK_CONNECTIONS_MAX. */
size_t flows_count(const struct flows *flows);

/*
 * Adds an accepted connection that net/nft.h redirected; its original address is the target. Takes
 * over the descriptor.
 */
void flows_add(struct flows *flows, int client);

/* The same with a given target. */
void flows_add_to(struct flows *flows, int client, const struct proxy_target *target);

/* The same with a port of this machine as its target. */
void flows_add_service(struct flows *flows, int client, uint16_t port);

/* Results for a connection. They do nothing if it has ended meanwhile. */
void flows_decide(struct flows *flows, uint32_t id, bool is_allowed);
void flows_found(struct flows *flows, const struct lookup_answer *answer);

#endif
