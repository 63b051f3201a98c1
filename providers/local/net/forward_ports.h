/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_FORWARD_PORTS_H
#define PROVIDERS_LOCAL_NET_FORWARD_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/settings.h"

/*
 * The lines `forward` of a profile: "3000", or "8080:3000" for port 8080 here and 3000 in the cell.
 */
enum { FORWARDS_MAX = 8 };

struct forward_port {
	uint16_t here;
	uint16_t inside;
};

bool forward_ports_are_wanted(const struct settings *settings);

/*
 * Reads all lines. Fails with ERROR_CONFIG if a line is not a port or a pair of ports, if two lines
 * have the same port here, or if allow-host already uses the port in the cell.
 */
bool forward_ports_read(const struct settings *settings, struct forward_port out[FORWARDS_MAX],
	size_t *out_count, struct error *err) ATTR_NODISCARD;

#endif
