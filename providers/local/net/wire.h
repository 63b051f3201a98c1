/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_WIRE_H
#define PROVIDERS_LOCAL_NET_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/helper.h"
#include "providers/local/net/network.h"
#include "providers/local/net/upstream.h"

/*
 * Messages between the broker and the relaying process of a cell's network, over a SOCK_SEQPACKET
 * pair; each packet is one message. Both are the same program, so structs define the format. But
 * that process reads data from the cell and the Internet, so the broker checks everything that it
 * sends (wire_read).
 */

/* The broker's first packet: the process confines itself as this user if it is root. */
struct wire_user {
	uint32_t uid;
	uint32_t gid;
};

/*
 * The second packet. It carries the open sockets of net/ports.h, in their order. It may contain the
 * password of a proxy: wipe it.
 */
struct wire_start {
	uint32_t service_count;
	uint16_t services[PORTS_SERVICES_MAX];
	uint32_t network_count;
	struct address_network networks[NETWORK_NETWORKS_MAX];
	struct upstream upstream;
};

/* All other packets of the broker: the answer to WIRE_ASK. */
struct wire_verdict {
	uint32_t id;
	uint32_t is_allowed;
};

enum wire_kind {
	WIRE_READY,
	WIRE_FAILED,      // the last message; `text` gives the reason
	WIRE_ASK,         // a connection waits for a verdict
	WIRE_GONE,        // the connection no longer waits
	WIRE_TELL,        // the result of connecting, if it was allowed
	WIRE_SERVER_NAME, // `name` is what the program sent
	WIRE_LIMIT,
};

struct wire_message {
	uint32_t kind;   // enum wire_kind
	uint32_t id;     // the connection; not 0 from WIRE_ASK to WIRE_SERVER_NAME
	uint32_t target; // enum network_target
	uint32_t way;    // enum network_way
	uint32_t result; // enum network_result
	uint32_t limit;  // enum network_limit
	uint32_t status; // network_connection.proxy_status
	uint32_t port;
	uint32_t client_port;    // the program's own port, in the cell
	uint32_t is_unavailable; // WIRE_FAILED with the reason CELL_UNAVAILABLE
	char name[NAME_SIZE];    // for WIRE_ASK, WIRE_TELL and WIRE_SERVER_NAME
	char text[HELPER_TEXT_SIZE];
};

/*
 * The second packet, with PORTS_SERVICES + start.service_count descriptors. Neither function waits.
 * Received data is checked; received descriptors are CLOEXEC, and missing ones are -1.
 */
bool wire_send_start(
	int control, const struct wire_start *start, const int fds[PORTS_MAX]) ATTR_NODISCARD;
bool wire_take_start(int control, struct wire_start *out, int out_fds[PORTS_MAX]) ATTR_NODISCARD;

/* False if that process would never write such a packet. */
bool wire_read(struct span packet, struct wire_message *out) ATTR_NODISCARD;

/* The same for the first packet, which only the broker writes. */
bool wire_read_start(struct span packet, struct wire_start *out) ATTR_NODISCARD;

/* The connection that a message describes; borrows its name. */
struct network_connection wire_connection(const struct wire_message *message);

#endif
