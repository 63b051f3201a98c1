/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_IGNORE_FILES_H
#define SYNC_RSYNC_IGNORE_FILES_H

#include "base/buf.h"

/* The .gitignore files below a folder, except links; those deeper in the tree come first. */
struct ignore_file {
	char *folder; // owned; from the root, "" for the root itself
	size_t depth;
	struct buf text;
};

struct ignore_files {
	struct ignore_file *items; // owned
	size_t count;
};

/* Unreadable files are left out. Worker thread. */
void ignore_files_read(struct ignore_files *files, const char *root);
void ignore_files_finish(struct ignore_files *files);

#endif
