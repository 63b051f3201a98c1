/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_END_H
#define SYNC_STORE_END_H

#include <limits.h>
#include <time.h>

#include "sync/store.h"

/*
 * A store as a folder among others: whose it is, and whether nothing in it is needed any more.
 * Nothing here opens it, or needs libgit2. All of it blocks.
 */

/* Writes down of which workspace it is. What cannot be written is not known, no more. */
void store_note_root(struct store *store, const char *root);
/* Reads that; false where it is not known. */
bool store_read_root(const char *folder, char root[PATH_MAX]);

/* When something was last put into it. */
time_t store_used(const char *folder);

enum { STORE_NEED_MAX = 96 };
/*
 * Whether it has nothing but checkpoints and what the user has allowed; else *out_need says what:
 * a conflict that nobody has ended, an agent's commits, what a sync of a sandbox goes on from. Of
 * the sandboxes named in `ended` (NULL-terminated, or NULL) nothing is needed.
 */
bool store_is_over(const char *folder, const char *const *ended, char out_need[STORE_NEED_MAX]);

/* Removes it with all that is in it. The caller holds its lock, and nobody has a use for it. */
bool store_remove(const char *folder, struct error *err) ATTR_NODISCARD;
/* Removes what killed removals have left, in the folder of the stores. */
void store_sweep_removed(const char *stores);

#endif
