/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_NETWORK_H
#define PROVIDERS_LOCAL_NET_NETWORK_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/process.h"
#include "providers/address.h"
#include "providers/local/net/host_names.h"
#include "providers/local/net/ports.h"

/*
 * The network of one cell, by names, as the broker sees it. It knows neither cells nor profiles:
 * whoever starts it has opened the cell's sockets (net/ports.h) and decides about each connection.
 *
 *     program │ sockets of     ── relaying process ── this machine's network
 *        cell │ net/ports.h             │    └─ lookup process (names → addresses)
 *                                     broker: on_ask, network_decide, on_tell
 *
 * The relaying process answers the cell's DNS, reads CONNECT and SOCKS, and connects. It is this
 * program, executed anew and confined (net/confinement.h); it reads what strangers write, so that
 * each message of it is checked here, and only so many a second are read. Nothing of a connection
 * leaves this machine before network_decide has said yes; then the name is looked up, and one of
 * its addresses that may be reached is connected to. The process ends with the broker.
 *
 * main has to begin with relay_is_asked (net/relay.h). Loop thread only; nothing blocks; nothing
 * is raised before a call returns.
 */
struct network;

/* Where a connection is to go. */
enum network_target {
	NETWORK_TO_NAME,
	NETWORK_TO_ADDRESS, // the program named no name, or one that our DNS does not know
	NETWORK_TO_SERVICE, // a port of this machine, one of network_options.services
};

/* How a program in the cell has asked for it. */
enum network_way { NETWORK_BY_SOCKET, NETWORK_BY_CONNECT, NETWORK_BY_SOCKS };

/* A connection of a program in the cell. Borrowed until the callback returns. */
struct network_connection {
	uint32_t id; // of this network; never 0, never used twice
	enum network_target target;
	enum network_way way;
	const char *name; // as host_name_read writes it; or an address; "localhost" of a service
	struct address address; // of NETWORK_TO_ADDRESS
	uint16_t port;          // to which
	uint16_t client_port;   // from which, in the cell: /proc/net/tcp there says whose it is
};

/* What has become of a connection that was allowed. */
enum network_result {
	NETWORK_CONNECTED,
	NETWORK_NOT_FOUND,   // the name has no address
	NETWORK_FORBIDDEN,   // it has only addresses that are not reached, whatever the name is
	NETWORK_UNREACHABLE, // nobody has answered
};

/* A limit at which connections or names are refused from then on, or until others end. */
enum network_limit { NETWORK_LIMIT_CONNECTIONS, NETWORK_LIMIT_NAMES };

enum {
	NETWORK_CONNECTIONS_MAX = 256, // open or undecided at a time; the next is reset
	NETWORK_NETWORKS_MAX = 256,    // of network_options
	NETWORK_START_MS = 10000,
	NETWORK_DECISION_MS = 600000, // a connection that is not decided by then is reset
};

struct network_listener {
	/* It is confined and serves. What connects before waits; nobody needs to wait for this. */
	void (*on_ready)(void *data);
	/* Answer with network_decide, here or later. */
	void (*on_ask)(void *data, const struct network_connection *connection);
	/* No answer is awaited any more: the program has closed it, or its time was up. */
	void (*on_gone)(void *data, uint32_t id);
	/* Once of each connection that was allowed, unless the program closes it before. */
	void (*on_tell)(void *data, const struct network_connection *connection,
		enum network_result result);
	/* At most once of a connection, after NETWORK_CONNECTED: the TLS server name that the
	 * program has sent, as host_name_read writes it. */
	void (*on_server_name)(void *data, uint32_t id, const char *name);
	/* Once of each limit: it was reached. */
	void (*on_limit)(void *data, enum network_limit limit);
	/*
	 * Once: it could not start, or has ended; every connection with it, and there is no other.
	 * CELL_UNAVAILABLE: this machine never lets us confine one. Stop it here or later.
	 */
	void (*on_end)(void *data, const struct error *err);
};

struct network_options {
	const int *fds;           // PORTS_MAX of them, of ports_open; duplicated: close yours
	const uint16_t *services; // the ports whose sockets follow PORTS_SERVICES, in that order
	size_t service_count;     // PORTS_SERVICES_MAX at most
	/*
	 * Private networks that may be reached, by name or by address. An address of this machine
	 * is reached only where its own /32 or /128 is among them; loopback, link-local, metadata
	 * and multicast addresses never are.
	 */
	const struct address_network *networks;
	size_t network_count; // NETWORK_NETWORKS_MAX at most
	uid_t uid;            // whom the process becomes, where the broker is root; otherwise ours
	gid_t gid;            // the same
};

/*
 * Starts the process. `spawner` is this machine's; the options are borrowed until this returns.
 * NULL where not even the start could be asked for (ERROR_SYSTEM).
 */
struct network *network_start(struct ev_loop *loop, struct spawner *spawner,
	const struct network_options *options, const struct network_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/* Answers on_ask. Of an id that is gone, or after on_end, nothing happens. */
void network_decide(struct network *network, uint32_t id, bool is_allowed);

/* Ends the process, all its connections, and all callbacks. NULL is fine. */
void network_stop(struct network *network);

#endif
