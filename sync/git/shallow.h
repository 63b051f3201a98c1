/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_SHALLOW_H
#define SYNC_GIT_SHALLOW_H

#include "sync/store.h"

/* The store's list of commits whose parents it does not have, as git keeps it. Blocks. */
bool shallow_add(struct store *store, const git_oid *id, struct error *err) ATTR_NODISCARD;

#endif
