/* SPDX-License-Identifier: MIT */
#ifndef SYNC_STORE_IMPL_H
#define SYNC_STORE_IMPL_H

#include "sync/store.h"

/* Shared by the files of the store; everyone else uses sync/store.h. */

enum { STORE_CHUNK = 256 << 10 }; // bytes of a file in memory at a time

/* ---- store_folder.c: the folder, and files that appear as a whole ---- */

/*
 * Creates the missing parts of the repository at store->path and opens its file descriptors. Every
 * file in it appears as a whole, so that a kill, or two processes at a time, do no harm.
 */
bool folder_open(struct store *store, struct error *err) ATTR_NODISCARD;

/* A new file in the store's folder "tmp". The name is relative to the store's folder. */
enum { TEMP_NAME_SIZE = 32 };
struct temp {
	int fd; // -1: none
	char name[TEMP_NAME_SIZE];
};
bool temp_create(struct store *store, struct temp *temp, struct error *err) ATTR_NODISCARD;
void temp_discard(struct store *store, struct temp *temp); // closes and removes it, if open

/* Renames the file to its name in the store; syncs the file before, its folder afterwards. */
bool temp_publish(
	struct store *store, struct temp *temp, const char *path, struct error *err) ATTR_NODISCARD;

/* Like temp_publish, but the file is on the disk only after the next store_keep. */
bool temp_rename(
	struct store *store, struct temp *temp, const char *path, struct error *err) ATTR_NODISCARD;

/* Removes the remains of killed writers: temporary files untouched for an hour. */
void folder_sweep(struct store *store);

/* Removes a temporary folder below "tmp", with its files and empty folders. */
void folder_remove(struct store *store, const char *path);

/* Creates the directories that lead to path, below the store's folder. */
bool folder_make_parents(struct store *store, const char *path, struct error *err) ATTR_NODISCARD;

/* ---- store_object.c ---- */

enum { OBJECT_PATH_SIZE = 56 };
/* "FOLDER/xx/…", like git's names of loose objects. */
void object_path(const char *folder, const git_oid *id, char path[OBJECT_PATH_SIZE]);

bool object_put(struct store *store, git_object_t type, struct span content, git_oid *out_id,
	struct error *err) ATTR_NODISCARD;

/* ---- store_refs.c ---- */

/* Syncs everything written so far to the disk, before something refers to it. */
bool store_sync_objects(struct store *store, struct error *err) ATTR_NODISCARD;

/* Sets a ref below refs/acp-broker/ to a commit that is on the disk (store_sync_objects). */
bool store_keep_commit(struct store *store, const char *name, const git_oid *commit,
	struct error *err) ATTR_NODISCARD;

/*
 * The commit of a ref, given by its path below the store's folder. ERROR_NOT_FOUND if it is
 * missing.
 */
bool ref_read(struct store *store, const char *path, git_oid *out_commit,
	struct error *err) ATTR_NODISCARD;

/* ---- hash.c: the id of a stream ---- */

/* Computes the id of a blob of exactly `size` bytes from pieces. */
struct hash {
	const struct git *git;
	git_odb_stream *stream;
};
bool hash_init(
	struct hash *hash, struct store *store, uint64_t size, struct error *err) ATTR_NODISCARD;
bool hash_add(struct hash *hash, struct span bytes, struct error *err) ATTR_NODISCARD;
bool hash_end(struct hash *hash, git_oid *out_id, struct error *err) ATTR_NODISCARD;
void hash_finish(struct hash *hash);

/* An odb that computes ids and stores nothing. */
bool hash_odb_create(const struct git *git, git_odb **out_odb, struct error *err) ATTR_NODISCARD;

/* ---- store_blob.c ---- */

/* Call it before the bytes read from a file become an object. ERROR_UNAVAILABLE, SYNC_BUSY. */
bool blob_is_unchanged(int fd, const struct stat *status, struct error *err) ATTR_NODISCARD;

/* ---- big.c ---- */

/* "big/xx/…", relative to the store's folder. */
void big_path(const git_oid *content, char path[OBJECT_PATH_SIZE]);

/*
 * Whether it exists, whole or as a delta. With `refresh`, also renews the age of everything it
 * needs.
 */
bool big_has(struct store *store, const git_oid *content, bool refresh);

/* Like store_put_version; the file has `status->st_size` bytes. */
bool big_put_file(struct store *store, int fd, const struct stat *status,
	const struct store_before *before, git_oid *out_content, struct error *err) ATTR_NODISCARD;

/* Stores parts of a file, joined in order, as a separate big object. */
bool big_put_parts(struct store *store, int fd, const struct extent *parts, size_t count,
	git_oid *out_content, struct error *err) ATTR_NODISCARD;

bool big_size(struct store *store, const git_oid *content, uint64_t *out_bytes,
	struct error *err) ATTR_NODISCARD;

bool big_copy_out(
	struct store *store, const git_oid *content, int fd, struct error *err) ATTR_NODISCARD;

/* ---- delta.c: a big object as pieces of other, whole ones ---- */

/*
 * A delta is a file "delta/xx/…" under the id of its content. It refers only to whole big objects,
 * never to another delta. So it is read in one step, however many versions there are, and other
 * deltas can be removed.
 */
enum { DELTA_PARTS_MAX = 64, DELTA_PIECES_MAX = 16384, DELTA_HOLE = UINT32_MAX };

struct delta_piece {
	uint64_t offset, length; // in the content; never empty, without gaps between pieces
	uint64_t at;             // offset in its part
	uint32_t part;           // index, or DELTA_HOLE
	uint32_t unused;
};

struct delta {
	uint64_t size; // of the content
	git_oid parts[DELTA_PARTS_MAX];
	uint32_t part_count, piece_count;
	struct delta_piece *pieces; // owned
};

void delta_path(const git_oid *content, char path[OBJECT_PATH_SIZE]);
void delta_finish(struct delta *delta);

/* ERROR_NOT_FOUND if it does not exist, ERROR_SYSTEM if it cannot be read. */
bool delta_read(struct store *store, const git_oid *content, struct delta *out_delta,
	struct error *err) ATTR_NODISCARD;
bool delta_write(struct store *store, const git_oid *content, const struct delta *delta,
	struct error *err) ATTR_NODISCARD;

/* The piece that an offset in the content lies in. */
const struct delta_piece *delta_piece_at(const struct delta *delta, uint64_t offset);

/* Reads the content of a delta. Opens each part once, when it is needed. */
struct delta_reader {
	struct store *store;
	const struct delta *delta; // borrowed
	int parts[DELTA_PARTS_MAX];
	uint64_t reads; // number of reads so far, of parts and holes
};
void delta_reader_init(struct delta_reader *reader, struct store *store, const struct delta *delta);
void delta_reader_finish(struct delta_reader *reader);
int delta_reader_part(struct delta_reader *reader, uint32_t part, struct error *err); // -1: failed
/* False if not all of it can be read. */
bool delta_reader_read(struct delta_reader *reader, char *to, size_t len, uint64_t at);

/* Appends a piece. False if there are too many. */
bool delta_add(struct delta *delta, struct delta_piece piece);

/* ---- delta_make.c ---- */

enum { DELTA_SIZE_MAX_GIB = 16 }; // of either version: larger ones are not compared

struct delta_request {
	int fd; // a file of the store
	uint64_t size;
	const git_oid *content, *before;
	const atomic_bool *is_cancelled; // may be NULL
	uint64_t work_max;               // 0: a limit derived from both sizes
};

/*
 * Stores a file of the store as a delta of an older version. *out_made says whether it did. It
 * makes no delta if the versions share less than half of the file, if the older version is gone, if
 * one of them is too large, if it is cancelled, or if it takes too much work. The time is
 * proportional to the sizes of both, whatever they contain; it needs less than 8 MiB of memory.
 * *out_work: bytes read or compared, and places looked up.
 */
bool delta_make(struct store *store, const struct delta_request *request, bool *out_made,
	uint64_t *out_work, struct error *err) ATTR_NODISCARD;

#endif
