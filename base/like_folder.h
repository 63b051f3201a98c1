/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIKE_FOLDER_H
#define BASE_LIKE_FOLDER_H

#include <sys/types.h>

/*
 * Create a file or folder that belongs to the owner of the folder around it, even if we are root:
 * otherwise users could not change what root creates in their folders. If we are root, we create it
 * with the owner's permissions: then no chown follows that somebody could redirect to another file.
 * If the owner may not create it, root does. Like openat(2) with O_CREAT and O_EXCL, and like
 * mkdirat(2). Any thread.
 */
int like_folder_open(int folder, const char *name, int flags, mode_t mode);
int like_folder_mkdir(int folder, const char *name, mode_t mode);

#endif
