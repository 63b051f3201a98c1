/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_FORWARD_PORTS_H
#define PROVIDERS_FORWARD_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"

/*
 * Ports of this machine that lead into a sandbox. A profile names them by its lines `forward`:
 * "3000", or "8080:3000" for port 8080 here and 3000 in the sandbox.
 */
enum { FORWARDS_MAX = 8 };

struct forward_port {
	uint16_t here;
	uint16_t inside;
};

/*
 * For a port that is open for one visit: on_answered is called once, when a program there has
 * answered a connection that had sent something. It must not close the port.
 */
struct forward_visit {
	void (*on_answered)(void *data);
	void *data;
};

/* FORWARD_TAKEN: another program has a port. The local provider has it in its table for all. */
extern const struct error_reason forward_taken_reason;

bool forward_ports_are_wanted(const struct settings *settings);

/*
 * Reads all lines. Fails with ERROR_CONFIG if a line is not a port or a pair of ports, or if two
 * lines have the same port here.
 */
bool forward_ports_read(const struct settings *settings, struct forward_port out[FORWARDS_MAX],
	size_t *out_count, struct error *err) ATTR_NODISCARD;

/*
 * For a sandbox whose connections go through the runner. Fails with ERROR_CONFIG for such a line,
 * and if the profile has `runner = never`.
 */
bool forward_ports_check(
	const struct settings *settings, bool wants_runner, struct error *err) ATTR_NODISCARD;

/* For a cell. Fails with ERROR_CONFIG if allow-host already uses one of the ports in it. */
bool forward_ports_check_services(const struct settings *settings, const struct forward_port *ports,
	size_t count, struct error *err) ATTR_NODISCARD;

/*
 * Listens on the port of 127.0.0.1, and of ::1, because browsers try both for "localhost". Port 0
 * is any free port; then *port is set. out_fds[1] is -1 on a machine without IPv6. Fails with the
 * reason FORWARD_TAKEN if another program has the port.
 */
enum { FORWARD_ADDRESSES = 2 };
bool forward_port_listen(
	uint16_t *port, int out_fds[FORWARD_ADDRESSES], struct error *err) ATTR_NODISCARD;

/*
 * All lines of a profile, and the sockets that listen for them. Nobody accepts connections yet, so
 * these wait. Zero-initialise.
 */
struct forward_listeners {
	struct forward_port ports[FORWARDS_MAX];
	int fds[FORWARDS_MAX][FORWARD_ADDRESSES]; // owned
	size_t count;
};
bool forward_listeners_open(struct forward_listeners *listeners, const struct settings *settings,
	struct error *err) ATTR_NODISCARD;
/* Adds a port that leads to the same port there, unless a line has it. FORWARD_TAKEN, ERROR_LIMIT.
 */
bool forward_listeners_add(
	struct forward_listeners *listeners, uint16_t port, struct error *err) ATTR_NODISCARD;
void forward_listeners_close(struct forward_listeners *listeners);

/* Adds a fact for each port: where it leads. `place` follows the words "port 3000". */
struct provider_describe_listener;
void forward_ports_describe(const struct settings *settings, const char *place,
	const struct provider_describe_listener *listener, void *data);

#endif
