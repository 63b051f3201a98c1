/* SPDX-License-Identifier: MIT */
#include "providers/forward_ports.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/text.h"
#include "providers/network.h"
#include "providers/provider.h"

enum { BACKLOG = 128, TRIES_MAX = 16, DESCRIBE_SIZE = 128 };

static const char key[] = "forward";

const struct error_reason forward_taken_reason = {"FORWARD_TAKEN", true,
	"end the program that has the port, or forward another port of this machine"};

/* ---- the profile ---- */

bool forward_ports_are_wanted(const struct settings *settings)
{
	return settings_get(settings, key) != NULL;
}

/*
 * Reads a decimal number from 1 to 65535 without leading zeros. Returns the text after it, or NULL.
 */
static const char *read_port(const char *text, uint16_t *out)
{
	unsigned port = 0;
	size_t len = 0;
	for (; text[len] >= '0' && text[len] <= '9' && len <= 5; len++) {
		port = port * 10 + (unsigned)(text[len] - '0');
	}
	*out = (uint16_t)port;
	return len > 0 && len <= 5 && text[0] != '0' && port <= UINT16_MAX ? text + len : NULL;
}

static bool read_line(struct forward_port *out, const char *line)
{
	const char *rest = read_port(line, &out->here);
	out->inside = out->here;
	if (rest && *rest == ':') {
		rest = read_port(rest + 1, &out->inside);
	}
	return rest && *rest == '\0';
}

static bool check_twice(
	const struct forward_port *ports, size_t count, const char *line, struct error *err)
{
	for (size_t i = 0; i < count; i++) {
		if (ports[i].here == ports[count].here) {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: another line forwards port %u of this machine", key, line,
				ports[i].here);
		}
	}
	return true;
}

bool forward_ports_read(const struct settings *settings, struct forward_port out[FORWARDS_MAX],
	size_t *out_count, struct error *err)
{
	size_t count = 0;
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		const char *line = setting->value;
		if (!line || strcmp(setting->key, key) != 0) {
			continue;
		}
		if (count == FORWARDS_MAX) {
			return error_set(err, ERROR_LIMIT, "%s: a profile has %d lines at most",
				key, (int)FORWARDS_MAX);
		}
		if (!read_line(&out[count], line)) {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: expected a port like 3000, or like 8080:3000 for port "
				"8080 of this machine and port 3000 in the sandbox",
				key, line);
		}
		if (!check_twice(out, count, line, err)) {
			return false;
		}
		count++;
	}
	*out_count = count;
	return true;
}

bool forward_ports_check(const struct settings *settings, bool wants_runner, struct error *err)
{
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	if (forward_ports_are_wanted(settings) && !wants_runner) {
		return error_set(err, ERROR_CONFIG,
			"forward does not work with runner = never: the connections go through the "
			"runner. Remove one of the two lines");
	}
	return forward_ports_read(settings, ports, &count, err);
}

/* A service's socket in the cell would occupy the port on which the agent's program listens. */
bool forward_ports_check_services(const struct settings *settings, const struct forward_port *ports,
	size_t count, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		struct network_host host;
		bool is_service = setting->value && strcmp(setting->key, "allow-host") == 0 &&
		                  network_host_read(&host, setting->value) && host.is_service;
		for (size_t i = 0; is_service && i < count; i++) {
			if (host.port == ports[i].inside) {
				return error_set(err, ERROR_CONFIG,
					"%s: port %u of this machine leads to port %u in the cell, "
					"but allow-host = %s already takes that port there; remove "
					"one of the two lines, or let the program in the cell use "
					"another port",
					key, ports[i].here, ports[i].inside, setting->value);
			}
		}
	}
	return true;
}

/* ---- listening here ---- */

static bool refuse_port(uint16_t port, const char *where, int errnum, struct error *err)
{
	if (errnum == EADDRINUSE) {
		return error_set_reason(err, ERROR_UNAVAILABLE, forward_taken_reason.name,
			"forward: port %u of %s is used by another program: end that program, or "
			"forward another port of this machine",
			port, where);
	}
	return error_set_errno(err, errnum, "forward: listening on port %u of %s", port, where);
}

static bool bind_and_listen(int fd, const void *name, socklen_t size)
{
	const int on = 1;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	       bind(fd, name, size) == 0 && listen(fd, BACKLOG) == 0;
}

static bool listen_ip4(uint16_t *port, int *out_fd, struct error *err)
{
	struct sockaddr_in name = {.sin_family = AF_INET,
		.sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || !bind_and_listen(fd, &name, sizeof(name)) ||
		getsockname(fd, (struct sockaddr *)&name, &size) != 0) {
		int errnum = errno;
		fd_close(&fd);
		return refuse_port(*port, "127.0.0.1", errnum, err);
	}
	*port = ntohs(name.sin_port);
	*out_fd = fd;
	return true;
}

/* *out_fd is -1 on a machine without IPv6. */
static bool listen_ip6(uint16_t port, int *out_fd, struct error *err)
{
	const int on = 1;
	const struct sockaddr_in6 name = {.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	*out_fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*out_fd >= 0 && setsockopt(*out_fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0 &&
		bind_and_listen(*out_fd, &name, sizeof(name))) {
		return true;
	}
	int errnum = errno;
	fd_close(out_fd);
	return errnum == EAFNOSUPPORT || errnum == EADDRNOTAVAIL ||
	       refuse_port(port, "::1", errnum, err);
}

/* A port that is free on 127.0.0.1 may be taken on ::1. */
bool forward_port_listen(uint16_t *port, int out_fds[FORWARD_ADDRESSES], struct error *err)
{
	int tries = *port == 0 ? TRIES_MAX : 1;
	for (int i = 0; i < tries; i++) {
		uint16_t chosen = *port;
		int fds[FORWARD_ADDRESSES] = {-1, -1};
		if (listen_ip4(&chosen, &fds[0], err) && listen_ip6(chosen, &fds[1], err)) {
			memcpy(out_fds, fds, sizeof(fds));
			*port = chosen;
			return true;
		}
		fd_close(&fds[0]);
	}
	return false;
}

void forward_listeners_close(struct forward_listeners *listeners)
{
	for (size_t i = 0; i < listeners->count; i++) {
		for (int j = 0; j < FORWARD_ADDRESSES; j++) {
			fd_close(&listeners->fds[i][j]);
		}
	}
	listeners->count = 0;
}

bool forward_listeners_open(
	struct forward_listeners *listeners, const struct settings *settings, struct error *err)
{
	size_t count = 0;
	if (!forward_ports_read(settings, listeners->ports, &count, err)) {
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (!forward_port_listen(&listeners->ports[i].here, listeners->fds[i], err)) {
			forward_listeners_close(listeners);
			return false;
		}
		listeners->count++;
	}
	return true;
}

bool forward_listeners_add(struct forward_listeners *listeners, uint16_t port, struct error *err)
{
	size_t count = listeners->count;
	for (size_t i = 0; i < count; i++) {
		if (listeners->ports[i].here == port) {
			return true;
		}
	}
	if (count == FORWARDS_MAX) {
		return error_set(err, ERROR_LIMIT, "%s: port %u: a sandbox has %d ports at most",
			key, port, (int)FORWARDS_MAX);
	}
	listeners->ports[count] = (struct forward_port){.here = port, .inside = port};
	if (!forward_port_listen(&listeners->ports[count].here, listeners->fds[count], err)) {
		return false;
	}
	listeners->count++;
	return true;
}

void forward_ports_describe(const struct settings *settings, const char *place,
	const struct provider_describe_listener *listener, void *data)
{
	struct forward_port ports[FORWARDS_MAX];
	size_t count = 0;
	struct error ignored; // the profile was checked
	char text[DESCRIBE_SIZE];
	(void)!forward_ports_read(settings, ports, &count, &ignored);
	for (size_t i = 0; i < count; i++) {
		text_format(text, sizeof(text), "localhost:%u leads to port %u %s", ports[i].here,
			ports[i].inside, place);
		listener->on_fact(data, key, text);
	}
}
