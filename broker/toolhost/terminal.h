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
 * One command in the sandbox and the last part of its output, stdout and stderr interleaved.
 * on_exited follows the last byte. If a background child process holds the output open, on_exited
 * comes after a moment of silence, and the output may still grow. Loop thread only.
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
	size_t output_limit; // bytes of output to keep
	int timeout_ms;      // then it is killed; 0: never
	char *read_buffer;   // TERMINAL_READ_SIZE bytes; borrowed, all terminals may share it
};

/*
 * Never called from inside terminal_start. on_output may come before on_started. A handler may
 * destroy the terminal.
 */
struct terminal_listener {
	void (*on_started)(void *data);
	void (*on_failed)(void *data, const struct error *err); // nothing follows
	/*
	 * A piece of output, as it comes; on_output or on_exited follows. It must not destroy the
	 * terminal. May be NULL.
	 */
	void (*on_piece)(void *data, struct span piece);
	void (*on_output)(void *data); // more output has arrived
	void (*on_exited)(void *data); // once, after on_started
	/*
	 * Nothing that the command started runs any more, or nobody knows. After on_exited; the
	 * last call.
	 */
	void (*on_emptied)(void *data);
};

/* How the command ended, as far as known. */
struct terminal_end {
	bool has_exited; // on_exited was called
	bool is_lost;    // the link to it was lost, so its end is unknown
	bool timed_out;  // killed after timeout_ms
	struct process_status status;
};

struct terminal *terminal_start(const struct terminal_config *config,
	const struct terminal_listener *listener, void *data, struct error *err) ATTR_NODISCARD;

/* Also kills the processes that it has started in the sandbox. NULL is fine. */
void terminal_destroy(struct terminal *terminal);

/* Kills the command's process group; on_exited follows. */
void terminal_kill(struct terminal *terminal);

/* From here on, discards its output, so that a background child process never blocks. */
void terminal_ignore_output(struct terminal *terminal);

const struct output_tail *terminal_output(const struct terminal *terminal);
bool terminal_output_has_ended(const struct terminal *terminal); // no byte follows
struct terminal_end terminal_end(const struct terminal *terminal);

#endif
