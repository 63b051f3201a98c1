/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_FILTERS_H
#define SYNC_GIT_FILTERS_H

#include "base/buf.h"
#include "base/user_config.h"

/*
 * The settings outside of the workspace that make the user's git change a file's content at a
 * commit: filters, line end conversions, attributes. The runtime's git must do the same, or
 * nothing. This reads no command, key or password, and only the name of a filter.
 */
struct filters {
	/*
	 * Lines for sync/git/remote/repo_update.sh: "whole NAME" for a filter that changes files in
	 * both directions; "clean NAME" for one that only changes them at a commit; "lfs" for
	 * git-lfs(1), which has no secret; "set KEY VALUE".
	 */
	struct buf rules;
	struct buf attributes; // .git/info/attributes
	struct buf further;    // the system's gitattributes(5), then the user's own
};

void filters_init(struct filters *filters);
void filters_finish(struct filters *filters);

/*
 * Reads them again. ERROR_LIMIT if a part would be left out: the runtime would commit such files
 * without their filters. ERROR_DENIED if the repository's own configuration names a file outside of
 * it as attributes: it may be any file of the user. `home` may be NULL. Blocks.
 */
bool filters_read(struct filters *filters, const struct user_config *config,
	const struct user_repository *repository, const char *home,
	struct error *err) ATTR_NODISCARD;

bool filters_are_none(const struct filters *filters);

#endif
