/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_MIRROR_WALK_H
#define SYNC_RSYNC_MIRROR_WALK_H

#include <stddef.h>

/* Shared by mirror.c and mirror_walk.c. */

/* Removes a file, or a folder with its content; follows no symbolic link. */
void mirror_remove(int at, const char *name);

/* "PREFIX20260131T101502-123456" */
void mirror_stamp(char *text, size_t size, const char *prefix);

#endif
