/* SPDX-License-Identifier: MIT */
#ifndef SYNC_PARKED_H
#define SYNC_PARKED_H

#include "sync/merge.h"

/*
 * The versions that lost a conflict. Each is kept in the store under a ref and
 * written beside the local file under a name that neither syncs nor compiles:
 * NAME.TIME-ID.acp-conflict, as in main.c.20260131T101502-3f2a91.acp-conflict.
 */
#define PARKED_SUFFIX ".acp-conflict"

bool parked_is_name(struct span name); // of the last component

/*
 * The path of the parked version of a conflict, below the same directory. A NAME too
 * long for the addition loses its end. The caller frees it.
 */
char *parked_path(const struct conflict *conflict, const char *stamp);

#endif
