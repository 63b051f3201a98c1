/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_KEYS_HOLDER_H
#define PROVIDERS_LOCAL_KEYS_HOLDER_H

#include <stdbool.h>

#include "base/attr.h"

/*
 * The process that holds the keys of a cell's programs. It is the broker's own program, executed
 * again, and runs outside of the cell:
 *
 *    program │ socket of     ── holder ══ TLS ══ the key's host
 *       cell │ ports_open_keys    └─ lookup process (net/lookup.h)
 *
 * A program sends a plain HTTP request to the socket, with a placeholder instead of the key. The
 * holder reads the request (request.h), replaces the placeholder by the key, and sends the request
 * only to the key's host; it follows no redirect. The answer is passed back unchanged; if it
 * contains the key itself, the holder resets the connection. The process is confined
 * (net/confinement.h) before it reads anything from the cell, and ends with the broker.
 */
#define HOLDER_ARGUMENT "--acp-broker-keys"

/* Call this first in main. It says whether this program was executed as the holder. */
bool holder_is_asked(int argc, char *const *argv);
void holder_run(void) ATTR_NORETURN;

#endif
