/* SPDX-License-Identifier: MIT */
#ifndef SYNC_NESTED_H
#define SYNC_NESTED_H

#include "sync/store.h"

/*
 * The repositories below the workspace's root, including submodules, that have files in its
 * snapshots. The store keeps their paths for the transports, one per line, as the last snapshot of
 * the whole workspace found them. Paths that contain a newline, or do not fit, are left out.
 */
enum { NESTED_MAX = 64 << 10 };

void nested_add(struct buf *lines, struct span path);
/* Writes the lines only if they have changed. */
bool nested_write(struct store *store, const struct buf *lines, struct error *err) ATTR_NODISCARD;
/* Appends nothing if they cannot be read. The caller initialises `out` for NESTED_MAX bytes. */
void nested_read(const struct store *store, struct buf *out);

#endif
