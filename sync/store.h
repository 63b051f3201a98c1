/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_H
#define SYNC_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/buf.h"
#include "base/git.h"
#include "base/span.h"
#include "sync/extents.h"

/*
 * The object store of one workspace: a private bare git repository (0700) and,
 * beside its packs, a folder of big objects. A snapshot is a git tree in it.
 * It is whole: nothing in it refers to the user's repository.
 *
 * A file over the big-file limit is no blob but a big object, held once under
 * the id that git would give its content as a blob. In a tree it stands as a
 * gitlink, which git neither follows nor packs; the lowest bit of the
 * gitlink's id is replaced by the executable bit. A later version of it is held
 * as a delta: pieces of older big objects, and what is new as another one.
 *
 * All of sync/ but the transports blocks and belongs on the worker pool. A
 * store is used by one thread at a time; several may be open on one folder.
 */
struct store {
	const struct git *git;
	git_repository *repository;
	git_odb *odb;
	git_odb *hasher; // keeps nothing: for ids of streams
	int folder_fd;   // the bare repository
	int big_fd;      // its folder "big"
	char *path;      // absolute
	uint64_t big_file_bytes;
};

enum { STORE_BIG_FILE_DEFAULT = 32 << 20 };

/* What a path is: a mode and an id as in a git tree. A mode of 0: nothing. */
enum entry_mode {
	ENTRY_NONE = 0,
	ENTRY_FILE = 0100644,
	ENTRY_EXECUTABLE = 0100755,
	ENTRY_LINK = 0120000,
	ENTRY_BIG = 0160000, // a file over the limit; the id has the executable bit
};

struct store_entry {
	enum entry_mode mode;
	git_oid id;
};

bool store_entry_equal(const struct store_entry *a, const struct store_entry *b);
bool store_entry_is_file(const struct store_entry *entry); // of three kinds, not a link
bool store_entry_is_executable(const struct store_entry *entry);
/* Whether two are files with the same bytes, executable or not. */
bool store_entry_same_content(const struct store_entry *a, const struct store_entry *b);

/*
 * Opens the store at `path`, making it and its parents (0700) where it is
 * missing. ERROR_UNAVAILABLE without libgit2, ERROR_SYSTEM with the reason
 * otherwise. `big_file_bytes` 0 is the default.
 */
bool store_open(struct store *store, const char *path, uint64_t big_file_bytes,
	struct error *err) ATTR_NODISCARD;
void store_close(struct store *store);

/*
 * Puts the content of a regular file, read from its beginning to its end, into
 * the store. Memory does not grow with its size. ERROR_UNAVAILABLE (try again)
 * where it changed while it was read, or could not be read. `status` is the fstat of the time
 * before, and is brought up to the one after.
 */
bool store_put_file(struct store *store, int fd, struct stat *status, struct store_entry *out_entry,
	struct error *err) ATTR_NODISCARD;

/* What a path was before, of any mode. Once cancelled a new version is not compared with it. */
struct store_before {
	struct store_entry entry;
	const atomic_bool *is_cancelled; // borrowed, may be NULL
};

/*
 * As store_put_file, of a path that was `before`: a big file that has half of that one's bytes or
 * more is held as a delta of it, unless to find them takes too much work.
 */
bool store_put_version(struct store *store, int fd, struct stat *status,
	const struct store_before *before, struct store_entry *out_entry,
	struct error *err) ATTR_NODISCARD;

/* Puts bytes as a blob: a link's target, a merged text. */
bool store_put_bytes(
	struct store *store, struct span bytes, git_oid *out_id, struct error *err) ATTR_NODISCARD;

/*
 * Takes a big object in from a stream, of which only what is data comes; of that, zeros become
 * holes as well. What is behind it in the stream stays unread. The content that the entry names was
 * announced; what is read may be another by now, and the entry becomes that. ERROR_UNAVAILABLE
 * where there is less, nothing kept. `before` is as for store_put_version.
 */
bool store_put_big(struct store *store, int fd, const struct extents *extents,
	const struct store_before *before, struct store_entry *entry,
	struct error *err) ATTR_NODISCARD;

/* What of a big object is data; and that, written to a stream without its holes. */
bool store_big_extents(struct store *store, const struct store_entry *entry,
	struct extents *out_extents, struct error *err) ATTR_NODISCARD;
bool store_send_big(struct store *store, const struct store_entry *entry,
	const struct extents *extents, int fd, struct error *err) ATTR_NODISCARD;

bool store_has(struct store *store, const struct store_entry *entry);
bool store_size(struct store *store, const struct store_entry *entry, uint64_t *out_bytes,
	struct error *err) ATTR_NODISCARD;

/* Writes the content of an entry that is a file or link to a descriptor. */
bool store_copy_out(struct store *store, const struct store_entry *entry, int fd,
	struct error *err) ATTR_NODISCARD;

/* The content of a blob; over `max` bytes ERROR_LIMIT. `out` is initialised by the caller. */
bool store_read(struct store *store, const git_oid *id, size_t max, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * A named snapshot: a commit without meaning to anyone but us, that keeps its
 * tree. The name is a ref below refs/acp-broker/; the message is ours to read.
 * `parent` may be NULL; it is noted in the message and does not keep the commit it
 * names, so that forgetting a name frees what only that name kept. All that the
 * store was given is on the disk before the name is.
 */
bool store_keep(struct store *store, const char *name, const git_oid *tree, const git_oid *parent,
	const char *message, git_oid *out_commit, struct error *err) ATTR_NODISCARD;
/* Another name for what is kept as `known`. ERROR_NOT_FOUND where that is no name. */
bool store_keep_also(
	struct store *store, const char *name, const char *known, struct error *err) ATTR_NODISCARD;
/* ERROR_NOT_FOUND where there is no such name. */
bool store_find(
	struct store *store, const char *name, git_oid *out_tree, struct error *err) ATTR_NODISCARD;
bool store_forget(struct store *store, const char *name, struct error *err) ATTR_NODISCARD;

/*
 * Removes what no name and no stat cache leads to and nobody has put in for the grace
 * period: objects, packs without a single object in use, big objects. So what
 * another process has put in and not yet named is safe as long as it names it within that
 * time. Takes some seconds for 100,000 objects. ERROR_SYSTEM, and nothing removed, where
 * something that is in use cannot be read. Where another process prunes, nothing is done. After
 * `time_max_ms` (0: any time) it stops: what is not removed by then stays, and where it was not
 * even known what is in use that is ERROR_TIMEOUT.
 */
enum { STORE_GRACE_SECONDS = 24 * 3600 };
struct store_pruned {
	size_t objects, packs;
	uint64_t bytes; // of disk
};
bool store_prune(struct store *store, long long grace_seconds, long long time_max_ms,
	struct store_pruned *out_pruned, struct error *err) ATTR_NODISCARD;

/* The tree without anything in it; it is in every store. */
extern const git_oid store_empty_tree;

/* The content's id behind a big entry, and the entry of a content. */
void store_big_content(const struct store_entry *entry, git_oid *out_id);
struct store_entry store_big_entry(const git_oid *content, bool is_executable);

#endif
