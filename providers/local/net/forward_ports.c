/* SPDX-License-Identifier: MIT */
#include "providers/local/net/forward_ports.h"

#include <string.h>

#include "providers/network.h"

static const char key[] = "forward";

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

/* A service's socket in the cell would occupy the port on which the agent's program listens. */
static bool check_services(const struct settings *settings, const struct forward_port *port,
	const char *line, struct error *err)
{
	LIST_FOR_EACH(setting, &settings->list, struct setting, link) {
		struct network_host host;
		if (setting->value && strcmp(setting->key, "allow-host") == 0 &&
			network_host_read(&host, setting->value) && host.is_service &&
			host.port == port->inside) {
			return error_set(err, ERROR_CONFIG,
				"%s = %s: allow-host = %s already takes port %u in the cell; "
				"remove one of the two lines, or let the program in the cell use "
				"another port",
				key, line, setting->value, port->inside);
		}
	}
	return true;
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
				"8080 of this machine and port 3000 in the cell",
				key, line);
		}
		if (!check_twice(out, count, line, err) ||
			!check_services(settings, &out[count], line, err)) {
			return false;
		}
		count++;
	}
	*out_count = count;
	return true;
}
