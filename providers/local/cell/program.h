/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_CELL_PROGRAM_H
#define PROVIDERS_LOCAL_CELL_PROGRAM_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * A copy of this program in a memory file that nobody can change. Each cell executes a copy of its
 * own, so that /proc/1/exe is no file of this machine, and no cell can make the copy of another one
 * unusable (chmod).
 *
 * To copy takes a millisecond. So the process that executes the copy is started before, and waits
 * (process_spec.has_program).
 */
struct cell_program {
	int fd;     // for process_spec
	int own_fd; // for writing; has the lock
};

/* Makes an empty file. Finish it, also after a failure. */
bool cell_program_open(struct cell_program *program, struct error *err) ATTR_NODISCARD;

/* Fills the file and releases its lock. Blocks for the program's own file. */
bool cell_program_fill(struct cell_program *program, struct error *err) ATTR_NODISCARD;

void cell_program_finish(struct cell_program *program);

/* Whether the calling program is such a copy. */
bool cell_program_is_copy(void);

#endif
