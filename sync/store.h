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
 * The object store of one workspace: a private bare git repository (0700) with, beside its packs, a
 * folder of big objects. A snapshot is a git tree in it. It is complete: nothing in it refers to
 * the user's repository.
 *
 * A file over the big-file limit is stored not as a blob but as a big object, once, under the id
 * that git would give its content as a blob. In a tree it appears as a gitlink, which git neither
 * follows nor packs; the lowest bit of the gitlink's id is replaced by the executable bit. A later
 * version is stored as a delta: pieces of older big objects, and another big object with the new
 * bytes.
 *
 * All of sync/ except the transports blocks and belongs on the worker pool. Only one thread at a
 * time may use a store; several stores may be open on one folder.
 */
struct store {
	const struct git *git;
	git_repository *repository;
	git_odb *odb;
	git_odb *hasher; // stores nothing: computes ids of streams
	int folder_fd;   // the bare repository
	int big_fd;      // its folder "big"
	char *path;      // absolute
	uint64_t big_file_bytes;
};

enum { STORE_BIG_FILE_DEFAULT = 32 << 20 };

/* The entry of a path: a mode and an id as in a git tree. A mode of 0: no entry. */
enum entry_mode {
	ENTRY_NONE = 0,
	ENTRY_FILE = 0100644,
	ENTRY_EXECUTABLE = 0100755,
	ENTRY_LINK = 0120000,
	ENTRY_BIG = 0160000, // a file over the limit; the id includes the executable bit
};

struct store_entry {
	enum entry_mode mode;
	git_oid id;
};

bool store_entry_equal(const struct store_entry *a, const struct store_entry *b);
bool store_entry_is_file(const struct store_entry *entry); // one of the three kinds of file
bool store_entry_is_executable(const struct store_entry *entry);
/* Whether both are files with the same bytes, executable or not. */
bool store_entry_same_content(const struct store_entry *a, const struct store_entry *b);

/*
 * Opens the store at `path`; creates it and its parents (0700) if they are missing.
 * ERROR_UNAVAILABLE without libgit2, otherwise ERROR_SYSTEM with the reason. A `big_file_bytes` of
 * 0 is the default.
 */
bool store_open(struct store *store, const char *path, uint64_t big_file_bytes,
	struct error *err) ATTR_NODISCARD;
void store_close(struct store *store);

/*
 * Puts the content of a regular file, read from beginning to end, into the store. Memory does not
 * grow with its size. ERROR_UNAVAILABLE (try again) if the file changed while it was read, or could
 * not be read. `status` is the fstat from before, and is updated to the one after.
 */
bool store_put_file(struct store *store, int fd, struct stat *status, struct store_entry *out_entry,
	struct error *err) ATTR_NODISCARD;

/*
 * The previous entry of a path, of any mode. After a cancel a new version is not compared with it.
 */
struct store_before {
	struct store_entry entry;
	const atomic_bool *is_cancelled; // borrowed, may be NULL
};

/*
 * Like store_put_file, for a path whose previous entry is `before`. A big file that has at least
 * half of its bytes from that version is stored as a delta of it, unless finding them takes too
 * much work.
 */
bool store_put_version(struct store *store, int fd, struct stat *status,
	const struct store_before *before, struct store_entry *out_entry,
	struct error *err) ATTR_NODISCARD;

/* Stores bytes as a blob: a link's target, or a merged text. */
bool store_put_bytes(
	struct store *store, struct span bytes, git_oid *out_id, struct error *err) ATTR_NODISCARD;

/*
 * Reads a big object from a stream that carries only its data; zeros in the data become holes too.
 * Bytes behind it in the stream stay unread. The entry names the announced content; if the content
 * has changed since, the entry is updated. ERROR_UNAVAILABLE if the stream ends early; then nothing
 * is stored. `before` is as for store_put_version.
 */
bool store_put_big(struct store *store, int fd, const struct extents *extents,
	const struct store_before *before, struct store_entry *entry,
	struct error *err) ATTR_NODISCARD;

/*
 * store_big_extents finds the data extents of a big object. store_send_big writes them to a stream,
 * without the holes.
 */
bool store_big_extents(struct store *store, const struct store_entry *entry,
	struct extents *out_extents, struct error *err) ATTR_NODISCARD;
bool store_send_big(struct store *store, const struct store_entry *entry,
	const struct extents *extents, int fd, struct error *err) ATTR_NODISCARD;

bool store_has(struct store *store, const struct store_entry *entry);
bool store_size(struct store *store, const struct store_entry *entry, uint64_t *out_bytes,
	struct error *err) ATTR_NODISCARD;

/* Writes the content of a file or link to a file descriptor. */
bool store_copy_out(struct store *store, const struct store_entry *entry, int fd,
	struct error *err) ATTR_NODISCARD;

/* The content of a blob; ERROR_LIMIT over `max` bytes. The caller initialises `out`. */
bool store_read(struct store *store, const git_oid *id, size_t max, struct buf *out,
	struct error *err) ATTR_NODISCARD;

/*
 * Names a snapshot: makes a commit that keeps its tree and has a meaning only for us. The name is a
 * ref below refs/acp-broker/; the message is for us to read. `parent` may be NULL. The message
 * names it, but the commit does not keep it. So when a name is forgotten, everything that only this
 * name kept can be removed. All objects are on the disk before the name is.
 */
bool store_keep(struct store *store, const char *name, const git_oid *tree, const git_oid *parent,
	const char *message, git_oid *out_commit, struct error *err) ATTR_NODISCARD;
/* Adds another name for the tree of `known`. ERROR_NOT_FOUND if that name does not exist. */
bool store_keep_also(
	struct store *store, const char *name, const char *known, struct error *err) ATTR_NODISCARD;
/* ERROR_NOT_FOUND if there is no such name. */
bool store_find(
	struct store *store, const char *name, git_oid *out_tree, struct error *err) ATTR_NODISCARD;
bool store_forget(struct store *store, const char *name, struct error *err) ATTR_NODISCARD;

/*
 * Removes everything that no name and no stat cache leads to and that is older than the grace
 * period: objects, packs in which no object is in use, and big objects. Objects that another
 * process has added are safe if it names them within that time. Takes some seconds for 100,000
 * objects. ERROR_SYSTEM if an object in use cannot be read; then nothing is removed. Does nothing
 * while another process prunes. After `time_max_ms` (0: no limit) it stops, and the rest stays;
 * ERROR_TIMEOUT if it does not yet know then which objects are in use.
 */
enum { STORE_GRACE_SECONDS = 24 * 3600 };
struct store_pruned {
	size_t objects, packs;
	uint64_t bytes; // on the disk
};
bool store_prune(struct store *store, long long grace_seconds, long long time_max_ms,
	struct store_pruned *out_pruned, struct error *err) ATTR_NODISCARD;

/* The empty tree; every store has it. */
extern const git_oid store_empty_tree;

/* The content id of a big entry, and the entry for a content id. */
void store_big_content(const struct store_entry *entry, git_oid *out_id);
struct store_entry store_big_entry(const git_oid *content, bool is_executable);

#endif
