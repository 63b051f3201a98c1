/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_SHALLOW_H
#define SYNC_GIT_SHALLOW_H

#include "sync/store.h"

/* Adds to the store's list of commits without parents, in git's format. Blocks. */
bool shallow_add(struct store *store, const git_oid *id, struct error *err) ATTR_NODISCARD;

#endif
