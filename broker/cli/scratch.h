/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_SCRATCH_H
#define BROKER_CLI_SCRATCH_H

#include <limits.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/* A folder in $TMPDIR with an empty workspace, for commands that try things. */
struct scratch {
	char folder[PATH_MAX - 64];
	char workspace[PATH_MAX]; // inside the folder; absolute, without links
};

/*
 * Creates the folder; the caller then calls scratch_remove. ERROR_CONFIG if TMPDIR cannot be used.
 */
bool scratch_make(struct scratch *scratch, const char *const *environment, const char *name,
	struct error *err) ATTR_NODISCARD;
void scratch_remove(const struct scratch *scratch);

/* Replaces the workspace by an empty one. */
bool scratch_empty(const struct scratch *scratch, struct error *err) ATTR_NODISCARD;

/*
 * Removes a folder with all of its content; follows no links. Leaves files that it cannot remove.
 */
void scratch_remove_folder(const char *folder);

#endif
