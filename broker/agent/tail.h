/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_TAIL_H
#define BROKER_AGENT_TAIL_H

#include <ev.h>
#include <stdbool.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/secrets.h"
#include "base/span.h"

/*
 * Reads a process's stderr to the end. Each line goes to the log; the last bytes are kept for the
 * error that says why the process died. Never stops reading.
 */
struct tail {
	struct ev_loop *loop;
	struct ev_io reader;
	int fd;                        // owned; -1 when closed
	const char *subject;           // borrowed; begins each line in the log
	struct buf line;               // the incomplete last line
	struct buf last;               // the newest bytes
	size_t keep;                   // how many of them tail_span returns
	struct buf told;               // the bytes for tail_span, secrets masked
	bool is_told;                  // `told` is up to date
	const struct secrets *secrets; // borrowed; masked in the log and in `told`; may be NULL
	bool was_cut;                  // bytes older than `last` were dropped
};

void tail_init(struct tail *tail, struct ev_loop *loop, const char *subject, size_t keep,
	const struct secrets *secrets);
void tail_start(struct tail *tail, int fd); // takes the descriptor (non-blocking)

/* Reads what has already arrived. Call it before you need the last bytes. */
void tail_catch_up(struct tail *tail);

/*
 * The newest bytes with secrets masked, starting at a line or a character. Borrowed until more is
 * read.
 */
struct span tail_span(struct tail *tail);

void tail_finish(struct tail *tail);

#endif
