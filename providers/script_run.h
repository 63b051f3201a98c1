/* SPDX-License-Identifier: MIT */
#ifndef PROVIDERS_SCRIPT_RUN_H
#define PROVIDERS_SCRIPT_RUN_H

#include "providers/provider.h"

/*
 * One short script in a sandbox, run by sandbox_exec: bytes go in, its output is
 * collected up to a limit, and its last words on stderr are kept. Loop thread.
 */
struct script_run;

struct script_order {
	const char *const *argv; // NULL-terminated, as env and cwd of struct exec_spec:
	const char *const *env;  // borrowed until script_run_start returns
	const char *cwd;
	struct span input;  // its stdin; borrowed until the end
	size_t output_max;  // bytes; more is ERROR_LIMIT
	struct buf *errors; // all of its stderr, up to its maximum; borrowed until the end; or NULL
	bool is_limited;    // as in struct exec_spec
	bool until_emptied; // the end is when nothing that it started runs any more
	long long silence_ms;  // without a byte taken or given: ERROR_TIMEOUT; 0: for ever
	long long deadline_ms; // all in all; 0: none
};

struct script_listener {
	/* More has come of its output: all so far; the words are those of stderr so far. May be
	 * NULL. */
	void (*on_output)(void *data, struct span output, const char *words);
	/*
	 * Once: it has ended and all output is there (err is NULL, whatever its status was;
	 * the buffer is the callee's to move away), or it could not be started, was lost,
	 * or was cut off. `words` is one printable line, may be "". Destroy it here or later.
	 */
	void (*on_end)(void *data, struct buf *output, const char *words, const struct error *err);
};

/*
 * Raises nothing before it returns; NULL where the sandbox refuses at once. A process that was cut
 * off is killed with its tree.
 */
struct script_run *script_run_start(struct ev_loop *loop, struct sandbox *sandbox,
	const struct script_order *order, const struct script_listener *listener, void *data,
	struct error *err) ATTR_NODISCARD;

/* How it has exited: from on_end on, where that told no error. */
struct process_status script_run_status(const struct script_run *run);

/* Kills it and all it started; its end is told as ever. */
void script_run_kill(struct script_run *run);

/* Kills what still runs; raises nothing more. NULL is fine. */
void script_run_destroy(struct script_run *run);

#endif
