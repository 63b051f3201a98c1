/* SPDX-License-Identifier: MIT */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>

/*
 * Opens one name, or a whole path without symbolic links, with openat2(2). The path cannot lead
 * above `folder`, unless `folder` is AT_FDCWD. Where the kernel or a seccomp filter refuses
 * openat2, this opens the path name by name instead. Sets CLOEXEC; creates nothing. Returns -1 with
 * errno.
 */
int beneath_open(int folder, const char *path, int flags);

/*
 * Like beneath_open, but only uses the kernel's memory: it waits for no disk and no server. Below
 * `folder`, unless that is AT_FDCWD, the path must not lead to another mount either. Fails with
 * EAGAIN if the kernel would have to wait, and with another errno if it lacks this feature (before
 * Linux 5.12).
 */
int beneath_open_cached(int folder, const char *path, int flags);

/*
 * Opens the folder at a relative path, for reading and syncing. The path has no "." and ".."; "" is
 * `root` itself. With `make`, creates the missing folders, with permissions from the umask. Returns
 * -1 with errno: ELOOP if a symbolic link is in the way, ENOTDIR if a file is.
 */
int beneath_open_folder(int root, const char *path, bool make);

#endif
