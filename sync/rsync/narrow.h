/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_NARROW_H
#define SYNC_RSYNC_NARROW_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * Rules for a push that looks at what differs between two trees and at nothing else there: what
 * somebody does to other files meanwhile stays, and a large tree is not walked.
 */
enum {
	NARROW_RULES_MAX = 1000, // each is tried for each name
	NARROW_PATH_MAX = 1000,  // bytes; rsync discards a long rule
};

/*
 * *out_fits: it can be said so; otherwise `rules` are of no use. Worker thread. Fails where the
 * store is lost.
 */
bool narrow_make(struct rules *rules, struct store *store, const git_oid *from, const git_oid *to,
	bool *out_fits, struct error *err) ATTR_NODISCARD;

#endif
