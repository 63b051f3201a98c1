/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_NARROW_H
#define SYNC_RSYNC_NARROW_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * Rules for a push that looks only at paths that differ between two trees. It leaves changes to
 * other files alone, and does not walk a large tree.
 */
enum {
	NARROW_RULES_MAX = 1000, // rsync tries each for each name
	NARROW_PATH_MAX = 1000,  // bytes; rsync discards longer rules
};

/*
 * *out_fits: the rules can express it; otherwise do not use `rules`. Worker thread. Fails if the
 * store is broken.
 */
bool narrow_make(struct rules *rules, struct store *store, const git_oid *from, const git_oid *to,
	bool *out_fits, struct error *err) ATTR_NODISCARD;

#endif
