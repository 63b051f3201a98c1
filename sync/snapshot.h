/* SPDX-License-Identifier: MIT */
#ifndef SYNC_SNAPSHOT_H
#define SYNC_SNAPSHOT_H

#include <stdatomic.h>

#include "sync/store.h"

/*
 * Takes a snapshot of a local directory into the store.
 *
 * Members are: what is in `base` whatever the ignore rules say now, what the
 * user's index tracks, what git would call untracked (.gitignore files,
 * .git/info/exclude, the user's global excludes), and what a pathspec of
 * `include` matches; without what a pathspec of `exclude` matches, without
 * every .git in any spelling that some file system takes for it, and without
 * the names that parked versions have (sync/parked.h). Directories that are
 * repositories of their own are read as any other. Bytes go in raw.
 *
 * The user's repository is read, never written, and no filter or hook of it runs.
 * Where its index cannot be read by libgit2, `git ls-files` is asked, and where
 * there is no git the tree is walked as if nothing were tracked; `note` says so.
 *
 * What cannot be read, and a link named .gitmodules, which git refuses in any tree, keeps its
 * place from `base`; `note` says so. So does a file that is written to while it is read, three
 * times: on_busy says so. FIFOs, sockets and devices are left out. A stat cache in the store makes
 * the next snapshot of an unchanged tree cost one walk; a file that changed too short a time before
 * it was read to be told apart later is read again the next time.
 */
struct snapshot_limits {
	size_t files_warn, files_max;   // 50,000 and 150,000
	uint64_t bytes_warn, bytes_max; // 5 GiB and 20 GiB
};

extern const struct snapshot_limits snapshot_default_limits;

struct snapshot_request {
	const char *root; // absolute
	/*
	 * NULL, or a directory that has the user's repository where the root is a copy of it
	 * without one: its further excludes count, not its index.
	 */
	const char *rules_of;
	const git_oid *base; // a tree; NULL: none
	/*
	 * NULL, or paths of folders, sorted, "" the root, each with those that lead to it: all
	 * others are known to be as in the base, and are not looked into.
	 */
	const char *const *folders;
	size_t folder_count;
	const char *const *include, *const *exclude; // NULL-terminated pathspecs; may be NULL
	struct snapshot_limits limits;
	const char *home;  // where the user's global excludes are looked for; may be NULL
	const char *cache; // a name for the stat cache, one a root; NULL: none is kept
	                   // (of some folders alone, it is read, and stays as it is)
	const atomic_bool *is_cancelled; // may be NULL; set: ERROR_UNAVAILABLE soon
	int64_t clock_offset_s;          // added to the time of day; 0 but in tests
	/* May be NULL. Told of each file that somebody writes to whenever it is read. */
	void (*on_busy)(void *data, const char *path);
	void *data;
};

/* What is over a limit that only warns; to be added up. */
enum snapshot_excess { SNAPSHOT_MANY_FILES = 1, SNAPSHOT_MANY_BYTES = 2 };

enum { SNAPSHOT_WARNING_MAX = 160 };

struct snapshot {
	git_oid tree;
	size_t files;
	uint64_t bytes;
	size_t read_files; // whose content was read, the others being known
	unsigned excess;   // of enum snapshot_excess; snapshot_warning
	char note[256];    // what the user should be told once; "" for nothing
	size_t refused;    // links that git refuses, which are as in the base
	char first_refused[128];
};

/*
 * Says how much there is of what is in excess. The number is another one each time, so that the
 * same is not to be told again because the text is not the same. "" where `kinds` is 0.
 */
void snapshot_warning(
	const struct snapshot *snapshot, unsigned kinds, char text[SNAPSHOT_WARNING_MAX]);

/*
 * ERROR_LIMIT over the limits, ERROR_DENIED for a root that may not be synced
 * (/, the home directory itself, system directories: snapshot_root_check),
 * ERROR_SYSTEM. Nothing in the store that anybody refers to has changed then.
 */
bool snapshot_take(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err) ATTR_NODISCARD;

/*
 * The same in two steps. The first walks and reads, and puts contents into the store, but no tree,
 * and no cache: it may be done while others write to the store through a handle of their own,
 * also while they take trees back that they have put there. The second needs the store quiet. What
 * the request borrows is borrowed until then. The view is gone after either finish or drop.
 */
struct snapshot_view;
struct snapshot_view *snapshot_begin(struct store *store, const struct snapshot_request *request,
	struct error *err) ATTR_NODISCARD;
bool snapshot_finish(struct snapshot_view *view, struct store *store, struct snapshot *out,
	struct error *err) ATTR_NODISCARD;
void snapshot_drop(struct snapshot_view *view); // NULL is fine

/*
 * How many files and bytes the root has that are members; no content is read. The store is any,
 * and nothing of this stays in it. Fails as snapshot_take does. Of `out` the rest is not set.
 */
bool snapshot_measure(struct store *store, const struct snapshot_request *request,
	struct snapshot *out, struct error *err) ATTR_NODISCARD;

bool snapshot_root_check(const char *root, const char *home, struct error *err) ATTR_NODISCARD;

/* Whether a path is one that no snapshot holds and no side may bring: "", ".", "..",
 * .git in any spelling (.GIT, git~1, with ignorable characters), absolute, empty
 * components, NUL. */
bool snapshot_path_is_safe(struct span path);

#endif
