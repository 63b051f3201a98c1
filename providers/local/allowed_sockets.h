/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_ALLOWED_SOCKETS_H
#define PROVIDERS_LOCAL_ALLOWED_SOCKETS_H

#include "base/span.h"
#include "providers/local/cell_drawing.h"
#include "providers/provider.h"

/*
 * The sockets of this machine that a confined agent can use: the key allow-socket. A value is a
 * path, or "$NAME": the path that this variable of the broker's environment names.
 */

/*
 * Draws those that are there. ERROR_CONFIG names the key and the value: it is no absolute path,
 * leads through a link, or names something else than a socket.
 */
bool allowed_sockets_draw(struct cell_drawing *drawing, const struct settings *settings,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* A sentence for each in sandbox_warnings: it can be used, or it is not there. */
void allowed_sockets_tell(
	struct sandbox *sandbox, const struct settings *settings, const char *const *environment);

/* Whether a variable's value is one of them, as a path or as a D-Bus or Docker address. */
bool allowed_sockets_have(
	const struct settings *settings, const char *const *environment, struct span name);

#endif
