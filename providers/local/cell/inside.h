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
 * The keeper copies the program to a sealed memory file, becomes the plan's user, and executes the
 * copy, so that /proc/1/exe is not a file of this machine. It makes the namespaces and waits for
 * the first process, which is number 1 of the PID namespace: when that ends, the kernel ends all
 * others. The first process makes the cell's files and keeps its capabilities; the spawner and its
 * descendants have none.
 */
#define CELL_PROGRAM "/proc/self/exe"
#define CELL_ARGUMENT "--acp-broker-cell"

/* Call this first in main: whether this program was executed as the program of a cell. */
bool cell_is_asked(int argc, char *const *argv);
void cell_run(char *const *argv) ATTR_NORETURN;

#endif
