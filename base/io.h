/* SPDX-License-Identifier: MIT */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

/* Stops a watcher that owns its descriptor, and closes that; its fd is -1 from then on. */
void io_close(struct ev_loop *loop, ev_io *io);

/* Whether a read or write that failed so has only to be made again. */
bool io_is_transient(int errnum);

/*
 * Keeps the newest `max` bytes of what a program says on stderr, for the error that tells why
 * it failed. `tail` is a terminated text with room for max + 1 bytes, "" at first; what is not
 * printable ASCII becomes a blank.
 */
void io_keep_words(char *tail, size_t max, struct span bytes);

#endif
