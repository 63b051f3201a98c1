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
 * Drains a process's stderr: each line goes to the log, the last bytes are kept
 * for the error that says why the process died. Never stops reading.
 */
struct tail {
	struct ev_loop *loop;
	struct ev_io reader;
	int fd;                        // owned; -1 when closed
	const char *subject;           // borrowed; before each line in the log
	struct buf line;               // the line that has not ended yet
	struct buf last;               // the newest bytes
	size_t keep;                   // how many of them are told
	struct buf told;               // all of them, less the secrets
	bool is_told;                  // `told` is up to date
	const struct secrets *secrets; // borrowed; masked in the log and in what is kept; may be
	                               // NULL
	bool was_cut;                  // older bytes than those of last were dropped
};

void tail_init(struct tail *tail, struct ev_loop *loop, const char *subject, size_t keep,
	const struct secrets *secrets);
void tail_start(struct tail *tail, int fd); // takes the descriptor (non-blocking)

/* Reads what has arrived already; before the last words are needed. */
void tail_catch_up(struct tail *tail);

/*
 * The newest bytes less the secrets, from the beginning of a line or character on. Borrowed until
 * more is read.
 */
struct span tail_span(struct tail *tail);

void tail_finish(struct tail *tail);

#endif
