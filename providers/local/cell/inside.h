/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_INSIDE_H
#define PROVIDERS_LOCAL_CELL_INSIDE_H

#include <stdbool.h>

#include "base/attr.h"

/*
 * The program of a cell. It is the broker's own program, executed anew: nothing of the broker's
 * memory is in it.
 *
 *     broker ── spawner ── guard ── keeper of the cell │ first process ── spawner ── guard ── agent
 *                                            this machine │ cell
 *
 * The keeper copies the program to a sealed memory file, becomes the plan's user, and executes the
 * copy, so that no file of this machine is behind /proc/1/exe. It makes the namespaces and waits
 * for the first process (number 1 of the PID namespace), whose end is everybody's. The first
 * process makes the cell's files and lets go of nothing; the spawner and all below it have no
 * capability.
 */
#define CELL_PROGRAM "/proc/self/exe"
#define CELL_ARGUMENT "--acp-broker-cell"

/* First thing in main: whether this program was executed to be a cell's. */
bool cell_is_asked(int argc, char *const *argv);
void cell_run(char *const *argv) ATTR_NORETURN;

#endif
