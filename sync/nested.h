/* SPDX-License-Identifier: MIT */
#ifndef SYNC_NESTED_H
#define SYNC_NESTED_H

#include "sync/store.h"

/*
 * The repositories below the workspace's root that have files in its snapshots, submodules among
 * them: lines of their paths, as the last snapshot of all the workspace has found them. It leaves
 * them in the store for the transports. One whose path is no line, or does not fit, is left out.
 */
enum { NESTED_MAX = 64 << 10 };

void nested_add(struct buf *lines, struct span path);
/* Writes only where they are others than before. */
bool nested_write(struct store *store, const struct buf *lines, struct error *err) ATTR_NODISCARD;
/* What cannot be read is none. `out` is initialised by the caller, for NESTED_MAX bytes. */
void nested_read(const struct store *store, struct buf *out);

#endif
