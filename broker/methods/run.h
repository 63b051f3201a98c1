/* SPDX-License-Identifier: MIT */
#ifndef BROKER_METHODS_RUN_H
#define BROKER_METHODS_RUN_H

#include <ev.h>

#include "base/buf.h"
#include "providers/provider.h"

/*
 * Runs one command in a sandbox: its input, the beginning of both outputs, and its exit status.
 * Processes that it leaves behind are killed. Loop thread only.
 */
struct run;

/*
 * After the command's end, a process that it left may still hold its output open. We kill that
 * process when no output has come for RUN_SETTLE_MS, and after RUN_LEFT_MS in any case.
 */
enum { RUN_SETTLE_MS = 500, RUN_LEFT_MS = 2000 };

struct run_config {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *const *argv, *const *env; // as in struct exec_spec
	const char *cwd;                      // the same
	size_t cwd_root;                      // as in struct exec_spec
	struct span input;                    // copied
	size_t output_max;                    // bytes to keep of each output
	int timeout_ms;                       // then it is killed; 0: no limit
	bool is_ours;                         // the broker's own script: not limited
	/* The command is over. Called once, never from inside run_start. May destroy the run. */
	void (*done)(void *data);
	void *data;
};

struct run_result {
	bool is_over;
	bool has_failed; // it did not start, or was lost; err gives the reason
	struct error err;
	bool timed_out;
	struct process_status status; // valid once it is over, unless it has failed
	long long duration_ms;        // until now, or until the command's end
	struct span out, errors;      // borrowed until the next event
	uint64_t out_total,
		err_total; // bytes that it wrote; if more than `out` has, `out` is cut
};

/* The configuration is borrowed until this returns. */
struct run *run_start(const struct run_config *config, struct error *err) ATTR_NODISCARD;

struct run_result run_result(const struct run *run);

/* Sends a signal to its process group; SIGKILL ends everything that it has started. */
void run_signal(struct run *run, int signal);

/* Kills it; no callback follows. NULL is fine. */
void run_destroy(struct run *run);

#endif
