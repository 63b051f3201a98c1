/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SCRIPT_RUN_H
#define PROVIDERS_SCRIPT_RUN_H

#include "providers/provider.h"

/*
 * Runs one short script in a sandbox by sandbox_exec: writes its input, collects its output up to a
 * limit, and keeps the last of its stderr. Loop thread.
 */
struct script_run;

struct script_order {
	const char *const *argv; // NULL-terminated; argv, env and cwd are those of struct exec_spec
	const char *const *env;  // borrowed until script_run_start returns
	const char *cwd;
	struct span input;  // its stdin; borrowed until the end
	size_t output_max;  // bytes; more output fails with ERROR_LIMIT
	struct buf *errors; // all of its stderr, up to its maximum; borrowed until the end; or NULL
	bool is_limited;    // like exec_spec.is_limited
	bool until_emptied; // ends only when no process that it started runs any more
	long long silence_ms;  // ERROR_TIMEOUT after this time without a byte; 0: none
	long long deadline_ms; // limit for the whole run; 0: none
};

struct script_listener {
	/*
	 * More output has come: `output` is all so far, `words` is all of stderr so far. May be
	 * NULL.
	 */
	void (*on_output)(void *data, struct span output, const char *words);
	/*
	 * Raised once. err is NULL if the script has ended, with any status, and all output is
	 * here; the callee may take over the buffer. Otherwise the script could not be started, was
	 * lost, or was cut off. `words` is one printable line; may be "". Destroy the run here or
	 * later.
	 */
	void (*on_end)(void *data, struct buf *output, const char *words, const struct error *err);
};

/*
 * Raises nothing before it returns. Returns NULL if the sandbox refuses at once. A script that is
 * cut off is killed with its descendants.
 */
struct script_run *script_run_start(struct ev_loop *loop, struct sandbox *sandbox,
	const struct script_order *order, const struct script_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/* How it exited. Valid from on_end on, if that had no error. */
struct process_status script_run_status(const struct script_run *run);

/* Kills it and its descendants; on_end is raised as usual. */
void script_run_kill(struct script_run *run);

/* Kills what still runs; raises nothing more. NULL is fine. */
void script_run_destroy(struct script_run *run);

#endif
