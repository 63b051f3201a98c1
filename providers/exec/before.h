/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_EXEC_BEFORE_H
#define PROVIDERS_EXEC_BEFORE_H

#include "providers/ssh/runs.h"

/*
 * What an instance is sent before the runner works (remote_request.before): it ends the processes
 * that earlier connections have left there, and has the environment told. It is a script, or if
 * the runner's file is there already, lines for the runner (runner/begin.c).
 */
struct exec_before {
	const struct ssh_runs *runs; // borrowed, as are the texts
	const char *place;
	const char *program;  // the runner's file there; NULL: a script
	const char *copy;     // the file that copy-in has brought for the script, or ""
	long long timeout_ms; // for its answer
};

/* Appends it with its NUL. */
bool exec_before_append(
	const struct exec_before *before, struct buf *out, struct error *err) ATTR_NODISCARD;

#endif
