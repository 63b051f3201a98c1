/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_COPY_FILE_H
#define BROKER_CONFIG_COPY_FILE_H

#include <stdbool.h>

#include "base/attr.h"
#include "base/error.h"

/* A file that a profile has copied into the sandbox before its agent starts. */
struct copy_file {
	char *source; // owned; absolute, here
	char *target; // owned; below the sandbox's home, or absolute there
};

/*
 * Reads "SOURCE" or "SOURCE:TARGET". A source begins with "/" or "~/"; without a target it is
 * below `home` (which may be NULL), and the same place below the home there is meant.
 * ERROR_CONFIG says what was expected; there is nothing to finish then.
 */
bool copy_file_read(const char *text, const char *home, struct copy_file *out_file,
	struct error *err) ATTR_NODISCARD;
void copy_file_finish(struct copy_file *file);

#endif
