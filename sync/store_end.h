/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_END_H
#define SYNC_STORE_END_H

#include <limits.h>
#include <time.h>

#include "sync/store.h"

/*
 * A store as a folder: which workspace it belongs to, and whether anything in it is still needed.
 * Nothing here opens the store or needs libgit2. All functions block.
 */

/* Notes the workspace of a store. If the note cannot be written, the workspace stays unknown. */
void store_note_root(struct store *store, const char *root);
/* Reads that note; false if the workspace is unknown. */
bool store_read_root(const char *folder, char root[PATH_MAX]);

/* When something was last added to it. */
time_t store_used(const char *folder);

enum { STORE_NEED_MAX = 96 };
/*
 * Whether the store has only checkpoints and the user's permissions. Otherwise *out_need names what
 * is still needed: an open conflict, an agent's commits, or the state of a sandbox's syncs.
 * Sandboxes in `ended` (NULL-terminated, or NULL) need nothing.
 */
bool store_is_over(const char *folder, const char *const *ended, char out_need[STORE_NEED_MAX]);

/* Removes it with its content. The caller holds its lock, and nobody needs the store. */
bool store_remove(const char *folder, struct error *err) ATTR_NODISCARD;
/* Removes the remains of killed removals from the folder of the stores. */
void store_sweep_removed(const char *stores);

#endif
