/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_FILTER_H
#define SYNC_RSYNC_FILTER_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * The filter rules of one workspace, which say which files rsync transfers. They come from the
 * .gitignore files of a mirror, the user's other excludes, the profile's include and exclude, and
 * the members of a tree, which are always transferred. The order is: unreadable paths; names that
 * are never transferred (.git, parked versions, our temporary files); `exclude`; members that would
 * otherwise be left out; `include`; every .gitignore; the ignore rules.
 *
 * Blocking; worker thread.
 */
enum {
	FILTER_IGNORE_FILE_MAX = 1 << 20, // bytes; a longer file is ignored
	FILTER_IGNORE_FILES_MAX = 10000,  // files; further ones are ignored
	FILTER_MEMBERS_MAX =
		1000, // members with their own rules; beyond that, whole folders are included
	FILTER_BYTES_MAX = 16 << 20,
};

struct filter_request {
	const char *mirror;     // absolute
	const char *local_root; // whose repository has more rules
	const char *home;       // may be NULL
	const char *const *include, *const *exclude;
	const char *const *closed; // paths that cannot be read in the runtime; NULL: none
};

struct filter {
	struct rules ignores; // from `include` on
	struct rules all;
	uint64_t print; // hash of the ignore rules that were read
};

void filter_init(struct filter *filter);
void filter_finish(struct filter *filter);

/* Reads the rules. ERROR_SYSTEM. */
bool filter_read(struct filter *filter, struct store *store, const struct filter_request *request,
	struct error *err) ATTR_NODISCARD;

/* Hash of the rules that the mirror has now. */
uint64_t filter_print(const char *mirror);

/* Makes `all` from the rules that were read and the members of these trees. */
bool filter_make(struct filter *filter, struct store *store, const struct filter_request *request,
	const git_oid *const *trees, size_t count, struct error *err) ATTR_NODISCARD;

/* Writes `all` to a file of that name in the folder, for --filter='merge NAME' and --from0. */
bool filter_write(const struct filter *filter, int folder, const char *name,
	struct error *err) ATTR_NODISCARD;

#endif
