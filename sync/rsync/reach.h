/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_REACH_H
#define SYNC_RSYNC_REACH_H

#include "base/span.h"
#include "sync/rsync/rules.h"

/*
 * The reach of a pull: where to look if two looks at the runtime root differ (remote/look.sh). It
 * has the folders in which a file differs, the folders that changed themselves, and those above
 * them. The rest of the mirror is up to date. If a folder of the mirror is no folder there any
 * more, everything must be looked at: rules that allow its deletion would also let its replacement
 * in.
 */
enum { REACH_FOLDERS_MAX = 1000, REACH_PATH_MAX = 1000 };

struct reach {
	char **folders; // paths, "" is the root; sorted
	size_t count;
};

/*
 * `words` are the differences that the look reported, each ending in NUL; `mirror` is the folder's
 * file descriptor. Paths that the rules leave out are not reached. False if everything must be
 * looked at: too much differs, or the ignore rules do. Worker thread.
 */
bool reach_read(struct reach *reach, struct span words, const struct rules *rules,
	int mirror) ATTR_NODISCARD;
void reach_finish(struct reach *reach);

/* Adds `rules`, restricted to the reach. */
void reach_add_rules(const struct reach *reach, const struct rules *rules, struct rules *out);

#endif
