/* SPDX-License-Identifier: MIT */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/*
 * Stops a watcher that owns its file descriptor, and closes the descriptor; its fd is -1
 * afterwards.
 */
void io_close(struct ev_loop *loop, ev_io *io);

/* Whether a read or write that failed with this errno only needs to be repeated. */
bool io_is_transient(int errnum);

/*
 * Keeps the last `max` bytes of a program's stderr, for the error that says why it failed. `tail`
 * is a terminated text with room for max + 1 bytes, "" at first. Bytes that are not printable ASCII
 * become spaces.
 */
void io_keep_words(char *tail, size_t max, struct span bytes);

#endif
