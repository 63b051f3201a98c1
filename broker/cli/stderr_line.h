/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_STDERR_LINE_H
#define BROKER_CLI_STDERR_LINE_H

#include "base/attr.h"
#include "base/error.h"

/*
 * A command's messages on stderr: lines that begin with "acp-broker: ", or log objects with
 * --log-format json. They may contain other programs' text, so control characters are shown as
 * letters (base/mask.h).
 */
void stderr_failure(const struct error *err);

/* Prints a note that is not a failure, always as one line. */
void stderr_note(const char *format, ...) ATTR_PRINTF(1, 2);

#endif
