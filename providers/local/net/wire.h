/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_WIRE_H
#define PROVIDERS_LOCAL_NET_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/net/network.h"

/*
 * What the broker and the relaying process of a cell's network say to each other over a
 * SOCK_SEQPACKET pair, a packet a message. They are one program, so that structs are the format;
 * but that process reads what a cell and the Internet send, so that the broker takes nothing of it
 * on trust (wire_read).
 */

/* The broker's first packet, with the sockets of net/ports.h that are open, in their order. */
struct wire_start {
	uint32_t uid; // whom to become, where it is root
	uint32_t gid;
	uint32_t service_count;
	uint16_t services[PORTS_SERVICES_MAX];
	uint32_t network_count;
	struct address_network networks[NETWORK_NETWORKS_MAX];
};

/* The broker's others: the answer to WIRE_ASK. */
struct wire_verdict {
	uint32_t id;
	uint32_t is_allowed;
};

enum wire_kind {
	WIRE_READY,
	WIRE_FAILED,      // `text` says why; the last
	WIRE_ASK,         // a connection waits for a verdict
	WIRE_GONE,        // it does not any more
	WIRE_TELL,        // how a connection that was allowed has begun
	WIRE_SERVER_NAME, // `name` is what its program has said
	WIRE_LIMIT,
};

enum { WIRE_TEXT_SIZE = 512 };

struct wire_message {
	uint32_t kind;   // enum wire_kind
	uint32_t id;     // of the connection; of WIRE_ASK to WIRE_SERVER_NAME not 0
	uint32_t target; // enum network_target
	uint32_t way;    // enum network_way
	uint32_t result; // enum network_result
	uint32_t limit;  // enum network_limit
	uint32_t port;
	uint32_t client_port;    // from which the program in the cell has connected
	uint32_t is_unavailable; // WIRE_FAILED, by the reason CELL_UNAVAILABLE
	char name[NAME_SIZE];    // of WIRE_ASK, WIRE_TELL and WIRE_SERVER_NAME
	char text[WIRE_TEXT_SIZE];
};

/*
 * The first packet, with PORTS_SERVICES + start.service_count descriptors. Neither waits. What is
 * received is checked; its descriptors are CLOEXEC, and those that are missing are -1.
 */
bool wire_send_start(
	int control, const struct wire_start *start, const int fds[PORTS_MAX]) ATTR_NODISCARD;
bool wire_take_start(int control, struct wire_start *out, int out_fds[PORTS_MAX]) ATTR_NODISCARD;

/* False of what that process would not have written. */
bool wire_read(struct span packet, struct wire_message *out) ATTR_NODISCARD;

/* The same of the first packet, which only the broker writes. */
bool wire_read_start(struct span packet, struct wire_start *out) ATTR_NODISCARD;

/* What a message says of a connection; borrows its name. */
struct network_connection wire_connection(const struct wire_message *message);

#endif
