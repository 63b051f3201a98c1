/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIBC_H
#define BASE_LIBC_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Functions that glibc has and musl has not: system calls, names of signals, texts of errors. Our
 * code calls these and not glibc's, so that it compiles with both libraries.
 */

/* Of renameat2(2). glibc has them in stdio.h, the kernel in linux/fs.h. */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif

/* What the error number means, in English; NULL where glibc does not know it. Constant. */
const char *libc_error_text(int errnum);

/* "TERM" for SIGTERM; NULL for what has no name. Constant. */
const char *libc_signal_name(int signal);

/* close_range(2), since Linux 5.9; its flags are in linux/close_range.h. For a forked child too. */
int libc_close_range(unsigned first, unsigned last, unsigned flags);

/* renameat2(2) */
int libc_rename(int from, const char *old_name, int to, const char *new_name, unsigned flags);

/* pidfd_send_signal(2), without any more information. */
int libc_pidfd_signal(int pid_fd, int signal);

/* statx(2): whether what is open is the root of a mount; false where that cannot be said. */
bool libc_is_mount_root(int fd);

/* Gives the system back what malloc keeps of freed memory; with musl nothing, it keeps little. */
void libc_trim(void);

#endif
