/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SNAPSHOT_H
#define SYNC_SNAPSHOT_H

#include <stdatomic.h>

#include "sync/store.h"

/*
 * Takes a snapshot of a local directory into the store.
 *
 * Its members are: every path in `base`, whatever the ignore rules say now; every path that the
 * user's index tracks; files that git would call untracked (.gitignore files, .git/info/exclude,
 * the user's global excludes); and paths that a pathspec of `include` matches. Left out are paths
 * that a pathspec of `exclude` matches, every .git in any spelling that some file system treats as
 * equal, and names of parked versions (sync/parked.h). Directories that are repositories themselves
 * are read like any other. Contents are stored raw.
 *
 * The user's repository is read, never written, and none of its filters or hooks runs. If libgit2
 * cannot read its index, the program git does (`git ls-files`). Without git, the tree is walked as
 * if nothing were tracked; `note` says so.
 *
 * A path that cannot be read keeps its entry from `base`, and so does a link named .gitmodules,
 * which git refuses in any tree; `note` says so. A file that is written to during three attempts to
 * read it also keeps its entry from `base`; on_busy says so. FIFOs, sockets and devices are left
 * out. A stat cache in the store makes the next snapshot of an unchanged tree cost one walk. If a
 * file changed so shortly before it was read that a later change could have the same timestamp, the
 * next snapshot reads it again.
 */
struct snapshot_limits {
	size_t files_warn, files_max;   // 50,000 and 150,000
	uint64_t bytes_warn, bytes_max; // 5 GiB and 20 GiB
};

extern const struct snapshot_limits snapshot_default_limits;

struct snapshot_request {
	const char *root; // absolute
	/*
	 * NULL, or a directory with the user's repository, if the root is a copy without one: its
	 * excludes are used too, but not its index.
	 */
	const char *rules_of;
	const git_oid *base; // a tree; NULL: none
	/*
	 * NULL, or the sorted paths of folders ("" is the root), including all folders above each.
	 * All other folders are known to match the base and are not read.
	 */
	const char *const *folders;
	size_t folder_count;
	const char *const *include, *const *exclude; // NULL-terminated pathspecs; may be NULL
	struct snapshot_limits limits;
	const char *home;  // where to look for the user's global excludes; may be NULL
	const char *cache; // name of the stat cache, one per root; NULL: no cache is kept (with
	                   // `folders` it is read but not changed)
	/*
	 * If we are root: leaves out files that the root's owner may not read, and `note` says so.
	 * Give such a snapshot its own cache.
	 */
	bool as_owner;
	const atomic_bool *is_cancelled; // may be NULL; once set, fails with ERROR_UNAVAILABLE soon
	int64_t clock_offset_s;          // added to the time of day; 0 except in tests
	/* May be NULL. Called for each file that was written to at every attempt to read it. */
	void (*on_busy)(void *data, const char *path);
	void *data;
};

/* Which warning limits are exceeded; flags. */
enum snapshot_excess { SNAPSHOT_MANY_FILES = 1, SNAPSHOT_MANY_BYTES = 2 };

enum { SNAPSHOT_WARNING_MAX = 160 };

struct snapshot {
	git_oid tree;
	size_t files;
	uint64_t bytes;
	size_t read_files; // files whose content was read; the others were known
	unsigned excess;   // of enum snapshot_excess; snapshot_warning
	char note[256];    // a message for the user, once; "" for none
	size_t refused;    // links that git refuses; their entries are from the base
	char first_refused[128];
};

/*
 * A text that says how far the limits in `kinds` are exceeded. Its numbers change each time, so do
 * not compare texts to decide whether to repeat the warning. "" if `kinds` is 0.
 */
void snapshot_warning(
	const struct snapshot *snapshot, unsigned kinds, char text[SNAPSHOT_WARNING_MAX]);

/*
 * ERROR_LIMIT over the limits; ERROR_DENIED for a root that may not be synced (/, the home
 * directory itself, system directories: snapshot_root_check); ERROR_SYSTEM. After a failure,
 * nothing that a ref leads to has changed in the store.
 */
bool snapshot_take(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err) ATTR_NODISCARD;

/*
 * The same in two steps. The first walks and reads, and puts contents into the store, but no tree
 * and no cache. Meanwhile other code may write to the store through its own handle, and even remove
 * trees that it has put there. During the second step nobody else may use the store. The request's
 * borrowed data must live until then. Both finish and drop free the view.
 */
struct snapshot_view;
struct snapshot_view *snapshot_begin(struct store *store, const struct snapshot_request *request,
	struct error *err) ATTR_NODISCARD;
bool snapshot_finish(struct snapshot_view *view, struct store *store, struct snapshot *out,
	struct error *err) ATTR_NODISCARD;
void snapshot_drop(struct snapshot_view *view); // NULL is fine

/*
 * Counts the files and bytes of the root's members without reading contents; sets only these in
 * `out`. Any store will do, and it is not changed. Fails like snapshot_take.
 */
bool snapshot_measure(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err) ATTR_NODISCARD;

bool snapshot_root_check(const char *root, const char *home, struct error *err) ATTR_NODISCARD;

/*
 * Whether a path may be in a snapshot, or come from the other side. Refused are "", ".", "..", .git
 * in any spelling (.GIT, git~1, with ignorable characters), absolute paths, empty components, and
 * NUL.
 */
bool snapshot_path_is_safe(struct span path);

#endif
