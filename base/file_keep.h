/* SPDX-License-Identifier: MIT */
#ifndef BASE_FILE_KEEP_H
#define BASE_FILE_KEEP_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * Copies the metadata of a file to the draft that will replace it. Copies owner and group as far as
 * we are allowed to; the access control list; the permission bits, without setuid and setgid, which
 * write(2) clears too; and up to a megabyte of "user." and security-label attributes, as far as the
 * file system accepts them. Fails if the file's permissions would change. `old` may be O_PATH, or
 * -1: then only `status` is copied. Blocks; for worker threads.
 */
bool file_keep(int old, const struct stat *status, int draft, struct error *err) ATTR_NODISCARD;

/*
 * Makes the names in a folder (O_PATH) survive a power failure. Succeeds without doing so if the
 * file system has no such operation, or if we may not read the folder.
 */
bool file_sync_folder(int folder, struct error *err) ATTR_NODISCARD;

#endif
