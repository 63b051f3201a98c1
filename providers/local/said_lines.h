/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_LOCAL_SAID_LINES_H
#define PROVIDERS_LOCAL_SAID_LINES_H

#include "providers/provider.h"

/*
 * Limits how many lines about connections go to the audit log. Otherwise a program that connects in
 * a loop could push older lines out of the log.
 */
struct said_lines {
	long long left; // lines that may be written now
	long long since_ms;
	size_t left_out; // lines left out since the last one that was written
};

void said_lines_init(struct said_lines *lines);

/* Whether this line may be written. If so, it tells how many lines were left out before it. */
bool said_lines_take(struct said_lines *lines, struct sandbox_connection *said) ATTR_NODISCARD;

#endif
