/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIBC_H
#define BASE_LIBC_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/*
 * Functions that glibc has and musl lacks: system calls, names of signals, texts of errors. Our
 * code calls these instead of glibc's, so that it compiles with both libraries.
 */

/* Flags of renameat2(2). glibc has them in stdio.h, the kernel in linux/fs.h. */
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0)
#define RENAME_EXCHANGE (1 << 1)
#endif

/* The meaning of the error number, in English; NULL if glibc does not know it. Static storage. */
const char *libc_error_text(int errnum);

/* "TERM" for SIGTERM; NULL if the signal has no name. Static storage. */
const char *libc_signal_name(int signal);

/* close_range(2), since Linux 5.9; its flags are in linux/close_range.h. Safe in a forked child. */
int libc_close_range(unsigned first, unsigned last, unsigned flags);

/* renameat2(2) */
int libc_rename(int from, const char *old_name, int to, const char *new_name, unsigned flags);

/* pidfd_send_signal(2) without a siginfo_t. */
int libc_pidfd_signal(int pid_fd, int signal);

/* statx(2): whether the open file is the root of a mount; false if the kernel cannot say. */
bool libc_is_mount_root(int fd);

/*
 * statx(2): when the file at the end of an absolute path, or the link there, was made; zero if the
 * file system does not know.
 */
struct timespec libc_birth(const char *path);

/* statx(2): the device of an open file, if the kernel knows it without asking a server. */
bool libc_known_device(int fd, dev_t *out_device);

/*
 * preadv2(2) at the file's current position, only from memory; -1 with EAGAIN if the data is not in
 * memory.
 */
ssize_t libc_read_cached(int fd, char *to, size_t size);

/*
 * From now on, until libc_trim, malloc keeps up to this many freed bytes for each arena. Otherwise
 * memory that is freed and allocated repeatedly costs a page fault for every 4 KiB. Does nothing
 * with musl.
 */
void libc_keep_freed(int max_bytes);

/* Returns freed memory from malloc to the system. Does nothing with musl, which keeps little. */
void libc_trim(void);

#endif
