/* SPDX-License-Identifier: MIT */
#ifndef BASE_REAL_PATH_H
#define BASE_REAL_PATH_H

#include <stdbool.h>

/*
 * The absolute path with its symbolic links and dots resolved on this machine, as a write to it
 * would resolve them: last parts that do not exist are kept, and a link to a missing target is
 * followed. Owned by the caller. A path that cannot be resolved (relative, a loop, a directory that
 * may not be read) is returned unchanged. Blocks: for a worker thread.
 */
char *real_path(const char *path);

/* The same, but returns NULL if the path cannot be resolved. */
char *real_path_find(const char *path);

/*
 * Appends each place that decides which file a path means, without links: every symbolic link on
 * the way, then the file itself. Whoever can write to a folder above one of them can make the path
 * mean another file. Appends nothing for a relative path, and stops after as many links as the
 * kernel follows. Blocks: for a worker thread.
 */
void path_places(const char *path, char ***places);

/*
 * Whether a path is a folder or lies in it. Compares only the names; they have no links and dots.
 */
bool path_is_at_or_below(const char *path, const char *folder);

/* Whether two folders are the same, or one contains the other. Compares only the names, too. */
bool paths_overlap(const char *one, const char *other);

/* "folder/name"; owned by the caller. */
char *path_join(const char *folder, const char *name);

/* The part after the last slash; the whole path if that part is empty. */
const char *path_last_part(const char *path);

/* Whether it is a file that we may run. */
bool path_is_program(const char *path);

/* The program of that name in the folders of PATH, to be freed; an empty one is the current one. */
char *path_find_program(const char *name, const char *path);

/* Whether one of its parts is "..". */
bool path_goes_up(const char *path);

#endif
