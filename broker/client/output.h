/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLIENT_OUTPUT_H
#define BROKER_CLIENT_OUTPUT_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/span.h"

/*
 * Text on its way to stdout, which may be a terminal or be read slowly. What is printed leaves at
 * once if there is room for it. Printing never blocks, fails or drops, and raises no event: whoever
 * prints looks at output_is_over first, so that this holds OUTPUT_MAX bytes and one text more.
 */
enum { OUTPUT_MAX = 1024 * 1024 };

struct output_listener {
	/* It was over OUTPUT_MAX and is below half of it. */
	void (*on_drained)(void *data);
	/* Everything was written; not after broken. */
	void (*on_flushed)(void *data);
	/* Once: nobody reads it any more (ERROR_UNAVAILABLE), or it failed. What is printed is
	 * dropped. */
	void (*on_broken)(void *data, const struct error *err);
};

struct output {
	struct ev_loop *loop;
	struct fd_inherited out;
	struct ev_io writer;
	struct ev_io gone; // of a pipe: the reader leaves while nothing is printed
	struct buf queue;
	const struct output_listener *listener;
	void *data;
	bool is_terminal; // control characters are shown as letters (base/mask.h)
	bool was_over;
	bool is_broken;
	char last; // byte printed; '\n' before the first
};

/* Takes over an inherited descriptor, as fd_inherited_init does. SIGPIPE is ignored. */
bool output_init(struct output *output, struct ev_loop *loop, int fd,
	const struct output_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
void output_finish(struct output *output);

void output_print(struct output *output, struct span text);

/* A newline, where the last line has none. */
void output_end_line(struct output *output);

/* Forgets what was not written, and what is printed from here on. Raises nothing. */
void output_drop(struct output *output);

bool output_is_over(const struct output *output);
bool output_is_idle(const struct output *output); // nothing waits, or nothing can be written

#endif
