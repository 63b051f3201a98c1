/* SPDX-License-Identifier: MIT */
#ifndef SYNC_OPEN_BELOW_H
#define SYNC_OPEN_BELOW_H

/*
 * As openat(2), CLOEXEC, but follows no link on the way and never leaves the directory
 * (openat2(2)). An empty path is the directory itself. -1 and errno.
 */
int open_below(int folder_fd, const char *path, int flags);

#endif
