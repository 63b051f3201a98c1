/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_STDERR_LINE_H
#define BROKER_CLI_STDERR_LINE_H

#include "base/attr.h"
#include "base/error.h"

/*
 * What a command says on stderr: lines that begin with "acp-broker: ", or objects of the log with
 * --log-format json. Others' words may be in them: what could drive a terminal is spelled
 * (base/mask.h).
 */
void stderr_failure(const struct error *err);

/* What is worth knowing and no failure: one line, whatever is in it. */
void stderr_note(const char *format, ...) ATTR_PRINTF(1, 2);

#endif
