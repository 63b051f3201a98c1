/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/* Closes *fd unless it is -1, and sets it to -1. errno is kept. */
void fd_close(int *fd);

/* For ATTR_CLEANUP(fd_cleanup) on a local int. */
void fd_cleanup(int *fd);

/* A pipe, both ends CLOEXEC and blocking; [0] reads, [1] writes. */
bool fd_pipe(int out_fds[2], struct error *err) ATTR_NODISCARD;

bool fd_set_nonblock(int fd, bool on, struct error *err) ATTR_NODISCARD;

/*
 * Opens /dev/null on each of 0, 1 and 2 that is closed, so that nothing opened
 * later takes that number. First thing in main.
 */
bool fd_fill_standard(struct error *err) ATTR_NODISCARD;

/*
 * Opens the pipe or terminal behind fd anew: a file description of our own,
 * CLOEXEC and non-blocking, while the shared one stays as it is. `flags` is
 * O_RDONLY or O_WRONLY. -1 where fd is something else or may not be opened.
 */
int fd_open_anew(int fd, int flags);

/*
 * Takes over an inherited descriptor (stdin, stdout) for non-blocking use
 * without changing it for the other processes that share it: pipes and
 * terminals are opened anew; a socket, or what cannot be opened anew, gets
 * O_NONBLOCK, which fd_inherited_finish takes off again (where stdin and stdout
 * are one socket, finish both together). A regular file is left as it is.
 * `flags` is O_RDONLY or O_WRONLY. The original number stays open on /dev/null
 * so that no later descriptor takes its place. On failure nothing has changed.
 */
struct fd_inherited {
	int fd;          // the descriptor to use: non-blocking, CLOEXEC; -1 once finished
	bool must_clear; // O_NONBLOCK was set on the shared description
};
bool fd_inherited_init(
	struct fd_inherited *inherited, int fd, int flags, struct error *err) ATTR_NODISCARD;
void fd_inherited_finish(struct fd_inherited *inherited);

/*
 * Writes all bytes, over EINTR and short writes; waits for a reader, also where
 * someone who shares the descriptor has made it non-blocking.
 */
bool fd_write_all(int fd, struct span bytes, struct error *err) ATTR_NODISCARD;

/* Milliseconds of CLOCK_MONOTONIC. */
long long clock_now_ms(void);

#endif
