/* SPDX-License-Identifier: MIT */
#ifndef BASE_FILE_KEEP_H
#define BASE_FILE_KEEP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Gives the file that takes the place of another what that one was besides its
 * content: owner and group as far as we may, the access list, permission bits
 * (less setuid and setgid, as write(2) takes them away), and up to a megabyte of
 * "user." and security-label attributes as far as the file system takes them.
 * Fails where permissions would be others than before. `old` may be O_PATH,
 * or -1: then `status` is all that is kept. Blocks; for worker threads.
 */
bool file_keep(int old, const struct stat *status, int draft, struct error *err) ATTR_NODISCARD;

/*
 * Makes the names in a folder (O_PATH) last through a power cut. A file system
 * that has no such thing, or a folder that may not be read, is no failure.
 */
bool file_sync_folder(int folder, struct error *err) ATTR_NODISCARD;

#endif
