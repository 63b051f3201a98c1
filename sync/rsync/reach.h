/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_REACH_H
#define SYNC_RSYNC_REACH_H

#include "base/span.h"
#include "sync/rsync/rules.h"

/*
 * The reach of a pull: the folders that it must look at after two looks at the runtime root
 * differed (remote/look.sh). These are the folders in which a file differs, the folders that
 * changed themselves, and all folders above them. The rest of the mirror is up to date. If a folder
 * of the mirror is no longer a folder in the runtime, the pull must look at everything, because
 * rules that allow its deletion would also let its replacement in.
 */
enum { REACH_FOLDERS_MAX = 1000, REACH_PATH_MAX = 1000 };

struct reach {
	char **folders; // paths, "" is the root; sorted
	size_t count;
};

/*
 * `words` are the differences that the look reported, each ending in NUL; `mirror` is the folder's
 * file descriptor. Leaves out paths that the rules exclude. False if the pull must look at
 * everything, because too much differs, or because the ignore rules differ. Worker thread.
 */
bool reach_read(struct reach *reach, struct span words, const struct rules *rules,
	int mirror) ATTR_NODISCARD;
void reach_finish(struct reach *reach);

/* Adds `rules`, restricted to the reach. */
void reach_add_rules(const struct reach *reach, const struct rules *rules, struct rules *out);

#endif
