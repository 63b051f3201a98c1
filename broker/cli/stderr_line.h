/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_STDERR_LINE_H
#define BROKER_CLI_STDERR_LINE_H

#include "base/attr.h"
#include "base/error.h"

/*
 * A command's messages on stderr: lines that begin with "acp-broker: ", or log objects with
 * --log-format json. They may contain text of others, so control characters are shown as letters
 * (base/mask.h).
 */
void stderr_failure(const struct error *err);

/*
 * Something worth knowing that is not a failure; printed as one line, whatever the text contains.
 */
void stderr_note(const char *format, ...) ATTR_PRINTF(1, 2);

#endif
