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

enum { RUN_GIT_WORDS_MAX = 512 };

struct run_git_call {
	const char *const *argv;
	const char *const *environment; // all of it
	struct span input;              // what it reads from stdin
	struct buf *output;             // initialised by the caller; what it prints is added
	char *words;                    // RUN_GIT_WORDS_MAX bytes: its stderr, as far as it fits
};

/*
 * The same with an environment of the caller's. That git fails is for the caller to judge, by its
 * exit status. ERROR_SYSTEM where it was killed.
 */
bool run_git_call(
	const struct run_git_call *call, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
