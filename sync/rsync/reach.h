/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_REACH_H
#define SYNC_RSYNC_REACH_H

#include "base/span.h"
#include "sync/rsync/rules.h"

/*
 * How far a pull has to look where two looks at the runtime root differ (remote/look.sh): into
 * the folders in which a file differs, those that have changed themselves, and those that lead
 * there. All else in the mirror is as it is there. Where a folder of the mirror's is none there any
 * more everything is looked at: rules that would let it go would let what comes in its place in.
 */
enum { REACH_FOLDERS_MAX = 1000, REACH_PATH_MAX = 1000 };

struct reach {
	char **folders; // paths, "" the root; sorted
	size_t count;
};

/*
 * `words` are what the look has told of the difference, each ended by NUL; `mirror` is a folder's
 * descriptor. What the rules leave out is not reached. False where everything has to be looked
 * at: that much differs, or the ignore rules do. Worker thread.
 */
bool reach_read(struct reach *reach, struct span words, const struct rules *rules,
	int mirror) ATTR_NODISCARD;
void reach_finish(struct reach *reach);

/* `rules` within the reach, and nothing else. */
void reach_add_rules(const struct reach *reach, const struct rules *rules, struct rules *out);

#endif
