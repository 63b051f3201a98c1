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
 * Text on its way to stdout, which may be a terminal, or be read slowly. Printed text is written at
 * once if there is room. Printing never blocks, fails or drops text, and raises no event. The
 * caller must check output_is_over first; then this buffer holds at most OUTPUT_MAX bytes and one
 * text more.
 */
enum { OUTPUT_MAX = 1024 * 1024 };

struct output_listener {
	/* The buffer was over OUTPUT_MAX and is now below half of it. */
	void (*on_drained)(void *data);
	/* Everything is written. Never after on_broken. */
	void (*on_flushed)(void *data);
	/*
	 * Called once: nobody reads stdout any more (ERROR_UNAVAILABLE), or writing failed. From
	 * here on printed text is dropped.
	 */
	void (*on_broken)(void *data, const struct error *err);
};

struct output {
	struct ev_loop *loop;
	struct fd_inherited out;
	struct ev_io writer;
	struct ev_io gone; // for a pipe: notices that the reader leaves while nothing is printed
	struct buf queue;
	const struct output_listener *listener;
	void *data;
	bool is_terminal; // show control characters as letters (base/mask.h)
	bool was_over;
	bool is_broken;
	char last; // the last byte printed; '\n' before the first
};

/* Takes over an inherited descriptor, as fd_inherited_init does. Ignores SIGPIPE. */
bool output_init(struct output *output, struct ev_loop *loop, int fd,
	const struct output_listener *listener, void *data, struct error *err) ATTR_NODISCARD;
void output_finish(struct output *output);

void output_print(struct output *output, struct span text);

/* Prints a newline unless the last line has one. */
void output_end_line(struct output *output);

/* Drops unwritten text, and everything printed from here on. No callback follows. */
void output_drop(struct output *output);

bool output_is_over(const struct output *output);
bool output_is_idle(const struct output *output); // nothing is queued, or nothing can be written

#endif
