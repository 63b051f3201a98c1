/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_NET_RELAY_H
#define PROVIDERS_LOCAL_NET_RELAY_H

#include <stdbool.h>

#include "base/attr.h"

/*
 * The program of a cell's network (net/network.h). It is the broker's own program, executed anew:
 * nothing of the broker's memory is in it.
 *
 *     broker ── spawner ── guard ── relaying process ── lookup process
 *
 * It takes the cell's sockets from the broker's first packet, becomes the user who works in the
 * cell, forks the lookup process, and confines itself before it reads anything of the cell's.
 */
#define RELAY_PROGRAM "/proc/self/exe"
#define RELAY_ARGUMENT "--acp-broker-relay"

/* First thing in main: whether this program was executed to be that process. */
bool relay_is_asked(int argc, char *const *argv);
void relay_run(void) ATTR_NORETURN;

#endif
