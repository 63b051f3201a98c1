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
 * The connections of a cell's programs, in the relaying process. Each goes through these states:
 *
 *     reading (a proxy's head) → deciding → resolving → connecting → relaying
 *
 * A connection that needs no proxy begins with deciding. Nothing of it leaves this machine before
 * the broker has said yes; then the name is looked up, its addresses are checked, and exactly these
 * are connected to, without waiting for what the program says first. What it says meanwhile is
 * kept, up to PIPE_SIZE.
 */
struct flows;

enum {
	FLOW_HEAD_MS = 10000, // for what a program tells a proxy
	FLOW_LOOKUP_MS = 30000,
	FLOW_CONNECT_MS = 20000, // for the last address
	FLOW_NEXT_MS = 3000,     // for each before it
	FLOW_ALIVE_S = 60,       // silence after which the kernel asks whether the other is there
};

struct flows_listener {
	/* For the broker: WIRE_ASK to WIRE_LIMIT. At most FLOW_MESSAGES_MAX of a connection. */
	void (*on_message)(void *data, const struct wire_message *message);
	/* False where it cannot be handed on now; the connection is refused then. */
	bool (*on_lookup)(void *data, const struct lookup_request *request);
};
enum { FLOW_MESSAGES_MAX = 3 };

/* All borrowed until the end. */
struct flows *flows_create(struct ev_loop *loop, struct host_names *names,
	const struct wire_start *start, const struct flows_listener *listener, void *data);
void flows_destroy(struct flows *flows); // NULL is fine

/* How many there are, NETWORK_CONNECTIONS_MAX at most. */
size_t flows_count(const struct flows *flows);

/*
 * A connection that was accepted, for where net/nft.h has redirected it from; takes over the
 * descriptor.
 */
void flows_add(struct flows *flows, int client);

/* The same, for where it wants to go. */
void flows_add_to(struct flows *flows, int client, const struct proxy_target *target);

/* The same, for a port of this machine. */
void flows_add_service(struct flows *flows, int client, uint16_t port);

/* What was asked for; nothing where the connection has ended meanwhile. */
void flows_decide(struct flows *flows, uint32_t id, bool is_allowed);
void flows_found(struct flows *flows, const struct lookup_answer *answer);

#endif
