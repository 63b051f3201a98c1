/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_INSIDE_H
#define PROVIDERS_LOCAL_CELL_INSIDE_H

#include <stdbool.h>

#include "base/attr.h"

/*
 * The program of a cell. It is the broker's own program, executed again, so that none of the
 * broker's memory is in it.
 *
 *    broker ── spawner ── guard ── keeper of the cell │ first process ── spawner ── guard ── agent
 *                                           this machine │ cell
 *
 * The guard executes a sealed copy of the program (program.h), so that /proc/1/exe is not a file of
 * this machine. The keeper makes the namespaces and waits for the first process, which is number 1
 * of the PID namespace: when that ends, the kernel ends all others. The first process makes the
 * cell's files and keeps its capabilities. The spawner makes the network meanwhile, and then gives
 * up its capabilities.
 */
#define CELL_ARGUMENT "--acp-broker-cell"

/* Call this first in main: whether this program was executed as the program of a cell. */
bool cell_is_asked(int argc, char *const *argv);
void cell_run(void) ATTR_NORETURN;

#endif
