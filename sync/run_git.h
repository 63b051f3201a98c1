/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RUN_GIT_H
#define SYNC_RUN_GIT_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

enum { RUN_GIT_TIMEOUT_MS = 60000 };

/*
 * Runs the local program git with an environment that makes it leave everything as it is
 * (no optional locks, no prompts, no fetching, no configuration of the user's or the
 * system's), and collects what it prints. It waits for at most RUN_GIT_TIMEOUT_MS, then
 * kills it: ERROR_TIMEOUT. ERROR_NOT_FOUND without git, ERROR_SYSTEM where it failed,
 * ERROR_LIMIT where it prints more than the buffer takes. Worker thread.
 */
bool run_git(const char *const *argv, struct buf *output, struct error *err) ATTR_NODISCARD;

#endif
