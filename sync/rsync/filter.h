/* SPDX-License-Identifier: MIT */
#ifndef SYNC_RSYNC_FILTER_H
#define SYNC_RSYNC_FILTER_H

#include "sync/rsync/rules.h"
#include "sync/store.h"

/*
 * What travels: the filter rules of one workspace, made of the .gitignore files of a mirror,
 * the user's other excludes, the profile's include and exclude, and the members that a tree
 * has whatever the rules say. In this order: what cannot be read, what never travels (.git, parked
 * versions, temporary files of ours), `exclude`, the members that would be left out otherwise,
 * `include`, every .gitignore, the ignore rules.
 *
 * Blocking; worker thread.
 */
enum {
	FILTER_IGNORE_FILE_MAX = 1 << 20, // bytes; a longer one is left out of account
	FILTER_IGNORE_FILES_MAX = 10000,  // files; likewise
	FILTER_MEMBERS_MAX = 1000,        // named one by one; more open their folders whole
	FILTER_BYTES_MAX = 16 << 20,
};

struct filter_request {
	const char *mirror;     // absolute
	const char *local_root; // whose repository has further rules
	const char *home;       // may be NULL
	const char *const *include, *const *exclude;
	const char *const *closed; // paths that cannot be read there; NULL: none
};

struct filter {
	struct rules ignores; // from `include` on
	struct rules all;
	uint64_t print; // of the ignore rules read
};

void filter_init(struct filter *filter);
void filter_finish(struct filter *filter);

/* Reads the rules. ERROR_SYSTEM. */
bool filter_read(struct filter *filter, struct store *store, const struct filter_request *request,
	struct error *err) ATTR_NODISCARD;

/* A print of the rules as they are in the mirror now. */
uint64_t filter_print(const char *mirror);

/* Makes `all` of the rules read and these trees, whose members travel. */
bool filter_make(struct filter *filter, struct store *store, const struct filter_request *request,
	const git_oid *const *trees, size_t count, struct error *err) ATTR_NODISCARD;

/* Writes `all` to a file of that name in the folder, for --filter='merge NAME' and --from0. */
bool filter_write(const struct filter *filter, int folder, const char *name,
	struct error *err) ATTR_NODISCARD;

#endif
