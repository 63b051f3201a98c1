/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_COPY_FILE_H
#define BROKER_CONFIG_COPY_FILE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/* A file that a profile copies into the sandbox before its agent starts. */
struct copy_file {
	char *source; // owned; absolute path on this machine
	char *target; // owned; relative to the sandbox's home, or absolute in the sandbox
};

/*
 * Reads "SOURCE" or "SOURCE:TARGET". A source begins with "/" or "~/". Without a target the source
 * must be below `home` (may be NULL), and the target is the same path below the sandbox's home.
 * ERROR_CONFIG says what was expected; then there is nothing to finish.
 */
bool copy_file_read(const char *text, const char *home, struct copy_file *out_file,
	struct error *err) ATTR_NODISCARD;
void copy_file_finish(struct copy_file *file);

#endif
