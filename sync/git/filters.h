/* SPDX-License-Identifier: MIT */
#ifndef SYNC_GIT_FILTERS_H
#define SYNC_GIT_FILTERS_H

#include "base/buf.h"
#include "base/user_config.h"

/*
 * What the user's git does to a file's content when it commits it, as far as that does not stand in
 * a file of the workspace: filters, conversions of line ends, attributes. The runtime's git has to
 * do the same, or nothing. No command, key or password is read into it: of a filter its name alone.
 */
struct filters {
	/*
	 * Lines, as sync/git/remote/repo_update.sh reads them: "whole NAME" of a filter that
	 * changes files both ways, "clean NAME" of one that does so only on the way to a commit,
	 * "lfs" of git-lfs(1), which has no secret; "set KEY VALUE".
	 */
	struct buf rules;
	struct buf attributes; // .git/info/attributes
	struct buf further;    // the system's gitattributes(5), then the user's own
};

void filters_init(struct filters *filters);
void filters_finish(struct filters *filters);

/*
 * Reads anew. ERROR_LIMIT where a part of it would be left out: what is not known there would be
 * committed as it is. ERROR_DENIED where the repository's own configuration names a file outside of
 * it as attributes: it may be any file of the user's. `home` may be NULL. Blocks.
 */
bool filters_read(struct filters *filters, const struct user_config *config,
	const struct user_repository *repository, const char *home,
	struct error *err) ATTR_NODISCARD;

bool filters_are_none(const struct filters *filters);

#endif
