/* SPDX-License-Identifier: MIT */
#ifndef BASE_LIKE_FOLDER_H
#define BASE_LIKE_FOLDER_H

#include <sys/types.h>

/*
 * A new file or folder that belongs to whoever owns the folder it is made in, also where we are
 * root: otherwise a user could not change what root has made in a folder of theirs. It is made as
 * that user, so that nobody gets what somebody else has put in its place. Where the user may not
 * make it, root does. As openat(2) with O_CREAT and O_EXCL, and mkdirat(2). Any thread.
 */
int like_folder_open(int folder, const char *name, int flags, mode_t mode);
int like_folder_mkdir(int folder, const char *name, mode_t mode);

#endif
