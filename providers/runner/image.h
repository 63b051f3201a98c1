/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_RUNNER_IMAGE_H
#define PROVIDERS_RUNNER_IMAGE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/span.h"

/*
 * The runner's program, which this program contains as data: a broker uploads it to a sandbox.
 *
 * With the word "hold" it is the first process of a container, and does nothing until SIGTERM.
 * Other arguments are described at main (main.c). Otherwise its stdin and stdout are the link
 * (providers/mux/wire.h). It sends its HELLO at once, and accepts messages after the broker's
 * HELLO. It writes nothing to stderr. It does not pass its own folder and environment on to the
 * processes that it starts: a RUNNER_EXEC names both. It ends everything that it started when no
 * byte has come for grace-ms (from the broker's HELLO), when the broker sends END, or when stdin
 * ends, unless it may outlive its channel. After END, its last frame is an END.
 */
struct runner_image {
	struct span bytes; // loaded only when they are read
	/* 40 hexadecimal digits, different for every program. `build` in the runner's HELLO. */
	char build[41];
};

/* Finds the runner for a machine as named by `uname -m`; false if this build has none for it. */
bool runner_image_find(const char *machine, struct runner_image *out) ATTR_NODISCARD;

/* Frees the memory until the bytes are read again. */
void runner_image_drop(const struct runner_image *image);

#endif
