/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/span.h"

/* Closes *fd unless it is -1, and sets it to -1. Keeps errno. */
void fd_close(int *fd);

/* For ATTR_CLEANUP(fd_cleanup) on a local int. */
void fd_cleanup(int *fd);

/* A pipe, both ends CLOEXEC and blocking; [0] reads, [1] writes. */
bool fd_pipe(int out_fds[2], struct error *err) ATTR_NODISCARD;

/*
 * Enlarges a pipe to FD_PIPE_LARGE bytes. Does nothing if the pipe is already larger, if the user's
 * pipes have used up the memory that the kernel allows them (pipe(7)), or if the descriptor is not
 * a pipe.
 */
enum { FD_PIPE_LARGE = 256 * 1024 };
void fd_grow_pipe(int fd);

bool fd_set_nonblock(int fd, bool on, struct error *err) ATTR_NODISCARD;

/*
 * Opens /dev/null on each of 0, 1 and 2 that is closed, so that no file opened later gets that
 * number. Call it first in main.
 */
bool fd_fill_standard(struct error *err) ATTR_NODISCARD;

/*
 * Opens the pipe or terminal behind fd again. The new file description is ours alone, CLOEXEC and
 * non-blocking; the shared one is unchanged. `flags` is O_RDONLY or O_WRONLY. Returns -1 if fd is
 * something else or may not be opened.
 */
int fd_open_anew(int fd, int flags);

/*
 * Takes over an inherited file descriptor (stdin, stdout) for non-blocking use, without changing it
 * for the other processes that share it. Pipes and terminals are opened again. A socket, or any
 * file that cannot be opened again, gets O_NONBLOCK; fd_inherited_finish clears it (if stdin and
 * stdout are one socket, finish both together). A regular file stays unchanged. `flags` is O_RDONLY
 * or O_WRONLY. The original number stays open on /dev/null, so that no later file gets it. On
 * failure nothing has changed.
 */
struct fd_inherited {
	int fd;          // the file descriptor to use: non-blocking, CLOEXEC; -1 once finished
	bool must_clear; // O_NONBLOCK was set on the shared file description
};
bool fd_inherited_init(
	struct fd_inherited *inherited, int fd, int flags, struct error *err) ATTR_NODISCARD;
void fd_inherited_finish(struct fd_inherited *inherited);

/*
 * Writes all bytes, in spite of EINTR and short writes. Waits for the reader even if another
 * process that shares the file descriptor made it non-blocking.
 */
bool fd_write_all(int fd, struct span bytes, struct error *err) ATTR_NODISCARD;

/* Milliseconds of CLOCK_MONOTONIC. */
long long clock_now_ms(void);

#endif
