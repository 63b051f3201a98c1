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
 * The broker's side of a cell's network, which works by names. It knows neither cells nor profiles:
 * its owner opens the cell's sockets (net/ports.h) and decides about each connection.
 *
 *    program │ sockets of     ── relaying process ── this machine's network
 *       cell │ net/ports.h             │    └─ lookup process (names → addresses)
 *                                    broker: on_ask, network_decide, on_tell
 *
 * The relaying process answers the cell's DNS questions, reads requests to the proxy, and connects.
 * It is this program, executed again and confined (net/confinement.h). Because it reads strangers'
 * data,
 * each of its messages is checked here, and only a limited number is read per second. Nothing
 * leaves this machine before network_decide has allowed the connection. Then the name is resolved,
 * and the process connects to one of its permitted addresses. If this machine has a proxy, the
 * process asks it for the name instead, and resolves only the proxy's; net/flow.h has the
 * exceptions. The process ends with the broker.
 *
 * main must begin with relay_is_asked (net/relay.h). Loop thread only; nothing blocks; nothing is
 * raised before a call returns.
 */
struct network;

/* The kind of a connection's target. */
enum network_target {
	NETWORK_TO_NAME,
	NETWORK_TO_ADDRESS, // without a name, or with an address that our DNS did not give
	NETWORK_TO_SERVICE, // a port of this machine, from network_options.services
};

/* How a program in the cell requested the connection. */
enum network_way { NETWORK_BY_SOCKET, NETWORK_BY_CONNECT, NETWORK_BY_SOCKS, NETWORK_BY_REQUEST };

/* A connection of a program in the cell. Borrowed until the callback returns. */
struct network_connection {
	uint32_t id; // never 0, never used twice in a network
	enum network_target target;
	enum network_way way;
	const char *name;       // from host_name_read; or an address; "localhost" for a service
	struct address address; // only for NETWORK_TO_ADDRESS
	uint16_t port;          // of the target
	uint16_t client_port;   // of the program, in the cell; net/program.h finds the program
	/* NETWORK_PROXY_REFUSED: the HTTP status of the proxy; 0: it did not answer in HTTP. */
	uint16_t proxy_status;
};

/* The result of connecting, after the broker has allowed it. */
enum network_result {
	NETWORK_CONNECTED,
	NETWORK_NOT_FOUND,   // the name has no address
	NETWORK_FORBIDDEN,   // all its addresses are forbidden, whatever the name is
	NETWORK_UNREACHABLE, // no address answered, or the proxy has reached none
	NETWORK_PROXY_REFUSED,
	NETWORK_PROXY_UNREACHABLE, // this machine's proxy has no address or does not answer
};

struct upstream; // net/upstream.h

/* Limits that refuse further connections until others end, or further names for good. */
enum network_limit { NETWORK_LIMIT_CONNECTIONS, NETWORK_LIMIT_NAMES };

enum {
	NETWORK_CONNECTIONS_MAX = 256, // open or undecided at once; the next is reset
	NETWORK_NETWORKS_MAX = 256,    // in network_options
	NETWORK_DECISION_MS = 600000,  // a connection that is undecided for longer is reset
};

struct network_listener {
	/*
	 * The process is confined and serves. Earlier connections wait until then; the caller need
	 * not wait.
	 */
	void (*on_ready)(void *data);
	/* Answer with network_decide, here or later. */
	void (*on_ask)(void *data, const struct network_connection *connection);
	/*
	 * No answer is needed any more: the program has closed the connection, or its time is up.
	 */
	void (*on_gone)(void *data, uint32_t id);
	/* Raised once for each allowed connection, unless the program closes it first. */
	void (*on_tell)(void *data, const struct network_connection *connection,
		enum network_result result);
	/*
	 * Raised at most once for each connection, after NETWORK_CONNECTED: the server name in the
	 * program's TLS handshake, in the form of host_name_read.
	 */
	void (*on_server_name)(void *data, uint32_t id, const char *name);
	/* Raised once for each limit when it is reached. */
	void (*on_limit)(void *data, enum network_limit limit);
	/*
	 * Raised once: the process could not start, or it and all its connections have ended; it is
	 * not restarted. CELL_UNAVAILABLE: this machine can never confine it. Stop the network here
	 * or later.
	 */
	void (*on_end)(void *data, const struct error *err);
};

/* Who the process becomes if the broker is root; otherwise ours. */
struct network_user {
	uid_t uid;
	gid_t gid;
};

/* What the process serves. */
struct network_options {
	const int *fds;           // PORTS_MAX descriptors from ports_open; duplicated: close yours
	const uint16_t *services; // ports of the sockets from PORTS_SERVICES on, in their order
	size_t service_count;     // at most PORTS_SERVICES_MAX
	/*
	 * Private networks that may be reached, by name or by address. An address of this machine
	 * is only reached if its own /32 or /128 is listed. Loopback, link-local, metadata and
	 * multicast addresses are never reached.
	 */
	const struct address_network *networks;
	size_t network_count;            // at most NETWORK_NETWORKS_MAX
	const struct upstream *upstream; // the proxy of this machine; NULL: none
};

/*
 * Starts the process, which confines itself and then waits for network_serve, so that it is ready
 * when the cell's sockets are. `spawner` is this machine's. Returns NULL if the start could not
 * even be requested (ERROR_SYSTEM).
 */
struct network *network_create(struct ev_loop *loop, struct spawner *spawner,
	struct network_user user, const struct network_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/*
 * Lets the process serve; call it once, and not after on_end. on_ready follows. The options are
 * borrowed until this returns. Fails with ERROR_SYSTEM; then stop the network.
 */
bool network_serve(struct network *network, const struct network_options *options,
	struct error *err) ATTR_NODISCARD;

/* Answers on_ask. Does nothing if the connection is gone, or after on_end. */
void network_decide(struct network *network, uint32_t id, bool is_allowed);

/* Ends the process, all connections and all callbacks. NULL is fine. */
void network_stop(struct network *network);

#endif
