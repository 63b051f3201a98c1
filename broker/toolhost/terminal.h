/* SPDX-License-Identifier: MIT */
#ifndef BROKER_TOOLHOST_TERMINAL_H
#define BROKER_TOOLHOST_TERMINAL_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "broker/toolhost/output_tail.h"
#include "providers/provider.h"

/*
 * One command in the sandbox and the end of what it writes, stdout and stderr
 * as they were interleaved. Its exit is told after its last byte; where a child
 * in the background holds the output open, after a moment of silence, and the
 * output may grow on. Loop thread only.
 */
struct terminal;

enum { TERMINAL_READ_SIZE = 256 * 1024 };

struct terminal_config {
	struct ev_loop *loop;
	struct sandbox *sandbox;
	const char *const *argv;
	const char *const *env;
	const char *cwd;
	size_t cwd_root;     // as in struct exec_spec
	size_t output_limit; // bytes kept of what it writes
	int timeout_ms;      // killed after it; 0: never
	char *read_buffer;   // TERMINAL_READ_SIZE; borrowed, may be shared by all terminals
};

/*
 * Never raised from inside terminal_start; output may come before started. A
 * handler may destroy the terminal.
 */
struct terminal_listener {
	void (*on_started)(void *data);
	void (*on_failed)(void *data, const struct error *err); // nothing follows
	void (*on_output)(void *data);                          // more has come
	void (*on_exited)(void *data);                          // once, after on_started
	/* Nothing that it started runs any more (or nobody knows); after on_exited, last. */
	void (*on_emptied)(void *data);
};

/* How it ended, as far as that is known. */
struct terminal_end {
	bool has_exited; // on_exited was raised
	bool is_lost;    // the link to it was: how it ended is not known
	bool timed_out;  // it was killed for timeout_ms
	struct process_status status;
};

struct terminal *terminal_start(const struct terminal_config *config,
	const struct terminal_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Kills what is below it in the sandbox, too. NULL is fine. */
void terminal_destroy(struct terminal *terminal);

/* Kills the command's process group; on_exited tells the end. */
void terminal_kill(struct terminal *terminal);

/* From here on its output is thrown away, so that a child in the background never blocks. */
void terminal_ignore_output(struct terminal *terminal);

const struct output_tail *terminal_output(const struct terminal *terminal);
bool terminal_output_has_ended(const struct terminal *terminal); // no byte follows
struct terminal_end terminal_end(const struct terminal *terminal);

#endif
