/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_RELAY_H
#define PROVIDERS_LOCAL_NET_RELAY_H

#include <stdbool.h>

#include "base/attr.h"

/*
 * The program of a cell's network (net/network.h). It is the broker's own program, executed again,
 * so that none of the broker's memory is in it.
 *
 *    broker ── spawner ── guard ── relaying process ── lookup process
 *
 * It takes the cell's sockets from the broker's first packet, becomes the user who works in the
 * cell, forks the lookup process, and confines itself before it reads anything from the cell.
 */
#define RELAY_ARGUMENT "--acp-broker-relay"

/* Call this first in main. It says whether this program was executed as that process. */
bool relay_is_asked(int argc, char *const *argv);
void relay_run(void) ATTR_NORETURN;

#endif
