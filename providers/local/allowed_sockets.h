/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_ALLOWED_SOCKETS_H
#define PROVIDERS_LOCAL_ALLOWED_SOCKETS_H

#include "base/span.h"
#include "providers/local/cell_drawing.h"
#include "providers/provider.h"

/*
 * The sockets of this machine that a confined agent may use (the key allow-socket). A value is a
 * path, or "$NAME" for the path in that variable of the broker's environment.
 */

/*
 * Draws the sockets that exist. Fails with ERROR_CONFIG, which names the key and the value, if the
 * value is not an absolute path, leads through a link, or names a file that is not a socket.
 */
bool allowed_sockets_draw(struct cell_drawing *drawing, const struct settings *settings,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* Adds a sentence to sandbox_warnings for each socket: the agent can use it, or it is missing. */
void allowed_sockets_tell(
	struct sandbox *sandbox, const struct settings *settings, const char *const *environment);

/*
 * Whether the value of a variable names an allowed socket, as a path or as a D-Bus or Docker
 * address.
 */
bool allowed_sockets_have(
	const struct settings *settings, const char *const *environment, struct span name);

#endif
