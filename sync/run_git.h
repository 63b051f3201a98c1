/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RUN_GIT_H
#define SYNC_RUN_GIT_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

enum { RUN_GIT_TIMEOUT_MS = 60000 };

/*
 * Runs the local program git and collects its output. Its environment makes git leave everything
 * unchanged: no optional locks, no prompts, no fetching, no configuration of the user or the
 * system. Waits at most RUN_GIT_TIMEOUT_MS, then kills it: ERROR_TIMEOUT. Fails with
 * ERROR_NOT_FOUND if there is no git, ERROR_SYSTEM if git fails, ERROR_LIMIT if the buffer has no
 * room for the output. For a worker thread.
 */
bool run_git(const char *const *argv, struct buf *output, struct error *err) ATTR_NODISCARD;

enum { RUN_GIT_WORDS_MAX = 512 };

struct run_git_call {
	const char *const *argv;
	const char *const *environment; // the whole environment
	struct span input;              // written to its stdin
	struct buf *output;             // initialised by the caller; the output is appended
	char *words;                    // RUN_GIT_WORDS_MAX bytes: its stderr, as much as fits
};

/*
 * The same with the caller's environment. If git fails, the caller judges its exit status.
 * ERROR_SYSTEM if it was killed.
 */
bool run_git_call(
	const struct run_git_call *call, int *out_status, struct error *err) ATTR_NODISCARD;

#endif
