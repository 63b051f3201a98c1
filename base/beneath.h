/* SPDX-License-Identifier: MIT */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>

/*
 * openat2(2) of one name, or of a whole way that has to be free of links; not
 * above `folder` unless that is AT_FDCWD. Where the kernel, or a filter before it, does
 * not know openat2, the same name by name. CLOEXEC; creates nothing. -1 with errno.
 */
int beneath_open(int folder, const char *path, int flags);

/*
 * Opens the folder at a relative path without "." and "..", "" being `root`
 * itself, for reading and syncing; with `make`, what is missing of it is made as
 * the umask says. -1 with errno: ELOOP where a link is in the way, ENOTDIR where a file is.
 */
int beneath_open_folder(int root, const char *path, bool make);

#endif
