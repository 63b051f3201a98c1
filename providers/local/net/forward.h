/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_FORWARD_H
#define PROVIDERS_LOCAL_NET_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/span.h"
#include "providers/local/helper.h"
#include "providers/forward_ports.h"

/*
 * The process that forwards ports of this machine into a cell. It is the broker's own program,
 * executed anew, and runs outside of the cell:
 *
 *     browser ── 127.0.0.1:HERE ── this process ── socket of cell/connector.h │ program
 *                                                                this machine │ cell
 *
 * It receives the sockets that listen on this machine, and cannot make sockets or connections
 * itself (net/confinement.h). The cell's first process makes the connections, and only inside the
 * cell. The forwarding process copies bytes without interpreting them, and ends with the broker.
 */
#define FORWARD_ARGUMENT "--acp-broker-forward"

enum {
	FORWARD_LISTENERS_MAX = 2 * FORWARDS_MAX, // 127.0.0.1 and ::1
	FORWARD_FDS_MAX = 1 + FORWARD_LISTENERS_MAX,
	FORWARD_CONNECTIONS_MAX = 128, // at once; we reset further ones
};

/* The broker's only packet, with the connector's end and `count` sockets that listen. */
struct forward_start {
	uint32_t uid; // user to become if it is root
	uint32_t gid;
	uint32_t count;
	uint16_t inside[FORWARD_LISTENERS_MAX]; // each listener's port in the cell
};

enum forward_kind {
	FORWARD_READY,
	FORWARD_FAILED, // the last message; `text` gives the reason
	FORWARD_FULL,   // sent once, when FORWARD_CONNECTIONS_MAX is reached
};

struct forward_message {
	uint32_t kind;
	uint32_t is_unavailable; // FORWARD_FAILED with the reason CELL_UNAVAILABLE
	char text[HELPER_TEXT_SIZE];
};

/* False if the process would never write such a packet. */
bool forward_read(struct span packet, struct forward_message *out) ATTR_NODISCARD;

/* Call this first in main: whether this program was executed as that process. */
bool forward_is_asked(int argc, char *const *argv);
void forward_run(void) ATTR_NORETURN;

#endif
