/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/point.h"
#include "sync/id.h"
#include "sync/store_impl.h"

/* ---- ids ---- */

enum { LOW_BIT = 1, LAST = GIT_OID_RAWSZ - 1 };

void store_big_content(const struct store_entry *entry, git_oid *out_id)
{
	*out_id = entry->id;
	out_id->id[LAST] &= (unsigned char)~LOW_BIT;
}

struct store_entry store_big_entry(const git_oid *content, bool is_executable)
{
	struct store_entry entry = {ENTRY_BIG, *content};
	store_big_content(&entry, &entry.id);
	entry.id.id[LAST] |= is_executable ? LOW_BIT : 0;
	return entry;
}

void big_path(const git_oid *content, char path[OBJECT_PATH_SIZE])
{
	object_path("big", content, path);
}

/* ---- copying and hashing ---- */

/* Everything read is hashed, and written to `to` unless that is -1. */
struct copy {
	int from, to;
	bool from_file, to_file; // these are regular files, with offsets
	bool skips_zeros;        // zeros in the data become holes in `to`, a file
	struct hash *hash;
	char *chunk; // owned, STORE_CHUNK bytes
};

static bool is_zero(struct span bytes)
{
	return bytes.len > 0 && bytes.data[0] == '\0' &&
	       memcmp(bytes.data, bytes.data + 1, bytes.len - 1) == 0;
}

static bool skip(const struct copy *copy, uint64_t length, struct error *err)
{
	return lseek(copy->to, (off_t)length, SEEK_CUR) >= 0 ||
	       error_set_errno(err, errno, "writing");
}

static bool write_chunk(const struct copy *copy, struct span bytes, struct error *err)
{
	if (!copy->skips_zeros) {
		return fd_write_all(copy->to, bytes, err);
	}
	bool written = true;
	for (size_t at = 0; written && at < bytes.len; at += EXTENT_BLOCK) {
		size_t rest = bytes.len - at;
		struct span block = {bytes.data + at, rest < EXTENT_BLOCK ? rest : EXTENT_BLOCK};
		written = is_zero(block) ? skip(copy, block.len, err)
		                         : fd_write_all(copy->to, block, err);
	}
	return written;
}

static bool add_chunk(struct copy *copy, size_t length, struct error *err)
{
	struct span bytes = {copy->chunk, length};
	if (copy->hash && !hash_add(copy->hash, bytes, err)) {
		return false;
	}
	return copy->to < 0 || write_chunk(copy, bytes, err);
}

/* Reads all of it: a pipe may return less at a time. */
static bool read_chunk(const struct copy *copy, size_t length, struct error *err)
{
	size_t done = 0;
	while (done < length) {
		ssize_t count = read(copy->from, copy->chunk + done, length - done);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			int errnum = errno;
			return error_set(err, ERROR_UNAVAILABLE, "reading: %s", strerror(errnum));
		}
		if (count == 0) {
			return error_set_reason(err, ERROR_UNAVAILABLE, "SYNC_BUSY",
				"the file became shorter while it was read");
		}
		done += (size_t)count;
	}
	return true;
}

static bool copy_data(struct copy *copy, uint64_t length, struct error *err)
{
	while (length > 0) {
		size_t count = length < STORE_CHUNK ? (size_t)length : STORE_CHUNK;
		if (!read_chunk(copy, count, err) || !add_chunk(copy, count, err)) {
			return false;
		}
		length -= count;
	}
	return true;
}

/* A hole stays a hole in a file; a stream omits it. It is hashed as the zeros that it reads as. */
static bool copy_hole(struct copy *copy, uint64_t length, struct error *err)
{
	if (copy->to_file && !skip(copy, length, err)) {
		return false;
	}
	memset(copy->chunk, 0, copy->hash && length > 0 ? STORE_CHUNK : 0);
	while (copy->hash && length > 0) {
		size_t count = length < STORE_CHUNK ? (size_t)length : STORE_CHUNK;
		if (!hash_add(copy->hash, (struct span){copy->chunk, count}, err)) {
			return false;
		}
		length -= count;
	}
	return true;
}

/* Handles the hole after the last data, which ended at `at`, and then this data. */
static bool copy_extent(
	struct copy *copy, uint64_t at, const struct extent *extent, struct error *err)
{
	if (!copy_hole(copy, extent->offset - at, err)) {
		return false;
	}
	if (copy->from_file && lseek(copy->from, (off_t)extent->offset, SEEK_SET) < 0) {
		return error_set_errno(err, errno, "reading");
	}
	return copy_data(copy, extent->length, err);
}

static bool copy_holes_and_data(
	struct copy *copy, uint64_t size, const struct extents *known, struct error *err)
{
	uint64_t at = 0;
	for (size_t i = 0; at < size; i++) {
		struct extent extent = {size, 0};
		if (!known) {
			extent = extent_next(copy->from, at, size);
		} else if (i < known->count) {
			extent = known->items[i];
		}
		if (!copy_extent(copy, at, &extent, err)) {
			return false;
		}
		at = extent.offset + extent.length;
	}
	return true;
}

/* If `known` is NULL, the holes are those of the file that is read. */
static bool copy_run(
	struct copy *copy, uint64_t size, const struct extents *known, struct error *err)
{
	copy->chunk = mem_alloc(STORE_CHUNK);
	bool copied = copy_holes_and_data(copy, size, known, err);
	free(copy->chunk);
	if (copied && copy->to_file && ftruncate(copy->to, (off_t)size) < 0) {
		copied = error_set_errno(err, errno, "writing");
	}
	return copied;
}

/* If the file system can share blocks, the copy takes no time and shows one moment. */
static bool clone_file(int from, int to)
{
	return ioctl(to, FICLONE, from) == 0;
}

/* ---- storing ---- */

/* Whether a file exists; with `refresh`, also renews its age. */
static bool look(struct store *store, const char *path, bool refresh)
{
	return refresh ? utimensat(store->folder_fd, path, NULL, 0) == 0
	               : faccessat(store->folder_fd, path, F_OK, 0) == 0;
}

/* A delta that lacks one of its parts counts as missing. */
static bool has_delta(struct store *store, const git_oid *content, bool refresh)
{
	struct delta delta;
	struct error ignored;
	char path[OBJECT_PATH_SIZE];
	if (!delta_read(store, content, &delta, &ignored)) {
		return false;
	}
	delta_path(content, path);
	bool is_there = look(store, path, refresh);
	for (uint32_t i = 0; is_there && i < delta.part_count; i++) {
		big_path(&delta.parts[i], path);
		is_there = look(store, path, refresh);
	}
	delta_finish(&delta);
	return is_there;
}

bool big_has(struct store *store, const git_oid *content, bool refresh)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	return look(store, path, refresh) || has_delta(store, content, refresh);
}

static bool publish_whole(
	struct store *store, struct temp *temp, const git_oid *content, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	if (point("big.copied") || fchmod(temp->fd, 0400) < 0) {
		return error_set_errno(err, errno, "store %s: %s", store->path, temp->name);
	}
	return temp_publish(store, temp, path, err);
}

/* If the content exists already, only renews its age for store_prune. */
static bool publish(struct store *store, struct temp *temp, uint64_t size, const git_oid *content,
	const struct store_before *before, struct error *err)
{
	git_oid older;
	uint64_t ignored;
	bool is_there = big_has(store, content, true);
	store_big_content(&before->entry, &older);
	const struct delta_request request = {.fd = temp->fd,
		.size = size,
		.content = content,
		.before = &older,
		.is_cancelled = before->is_cancelled};
	if (!is_there && before->entry.mode == ENTRY_BIG &&
		!delta_make(store, &request, &is_there, &ignored, err)) {
		return false;
	}
	return is_there || publish_whole(store, temp, content, err);
}

static bool hash_copy(struct store *store, struct copy *copy, uint64_t size,
	const struct extents *known, git_oid *out_content, struct error *err)
{
	struct hash hash;
	if (!hash_init(&hash, store, size, err)) {
		return false;
	}
	copy->hash = &hash;
	git_oid id;
	bool hashed = copy_run(copy, size, known, err) && hash_end(&hash, &id, err);
	hash_finish(&hash);
	if (hashed) {
		struct store_entry entry = {ENTRY_BIG, id};
		store_big_content(&entry, out_content);
	}
	return hashed;
}

bool big_put_file(struct store *store, int fd, const struct stat *status,
	const struct store_before *before, git_oid *out_content, struct error *err)
{
	struct temp temp = {.fd = -1};
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	struct copy copy = {.from = fd, .to = temp.fd, .from_file = true, .to_file = true};
	if (clone_file(fd, temp.fd)) {
		copy = (struct copy){.from = temp.fd, .to = -1, .from_file = true};
	}
	uint64_t size = (uint64_t)status->st_size;
	bool put = hash_copy(store, &copy, size, NULL, out_content, err) &&
	           blob_is_unchanged(fd, status, err) &&
	           publish(store, &temp, size, out_content, before, err);
	temp_discard(store, &temp);
	return put;
}

bool store_put_big(struct store *store, int fd, const struct extents *extents,
	const struct store_before *before, struct store_entry *entry, struct error *err)
{
	struct temp temp = {.fd = -1};
	git_oid announced, got;
	store_big_content(entry, &announced);
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	struct copy copy = {.from = fd, .to = temp.fd, .to_file = true, .skips_zeros = true};
	bool put = hash_copy(store, &copy, extents->size, extents, &got, err) &&
	           publish(store, &temp, extents->size, &got, before, err);
	temp_discard(store, &temp);
	if (put && !id_equal(&got, &announced)) {
		*entry = store_big_entry(&got, store_entry_is_executable(entry));
	}
	return put;
}

static bool copy_parts(struct store *store, struct copy *copy, const struct extent *parts,
	size_t count, git_oid *out_content, struct error *err)
{
	struct hash hash;
	struct store_entry entry = {.mode = ENTRY_BIG};
	uint64_t size = 0;
	for (size_t i = 0; i < count; i++) {
		size += parts[i].length;
	}
	if (!hash_init(&hash, store, size, err)) {
		return false;
	}
	copy->hash = &hash;
	bool copied = true;
	for (size_t i = 0; copied && i < count; i++) {
		copied = copy_extent(copy, parts[i].offset, &parts[i], err);
	}
	copied = copied && hash_end(&hash, &entry.id, err);
	hash_finish(&hash);
	if (copied) {
		store_big_content(&entry, out_content);
	}
	return copied;
}

bool big_put_parts(struct store *store, int fd, const struct extent *parts, size_t count,
	git_oid *out_content, struct error *err)
{
	struct temp temp = {.fd = -1};
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	struct copy copy = {.from = fd, .to = temp.fd, .from_file = true};
	copy.chunk = mem_alloc(STORE_CHUNK);
	bool put = copy_parts(store, &copy, parts, count, out_content, err);
	free(copy.chunk);
	char path[OBJECT_PATH_SIZE];
	if (put) {
		big_path(out_content, path);
		put = look(store, path, true) || publish_whole(store, &temp, out_content, err);
	}
	temp_discard(store, &temp);
	return put;
}

/* ---- reading ---- */

static int open_whole(struct store *store, const git_oid *content, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	int fd = openat(store->folder_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		error_set_errno(err, errno, "store %s: %s", store->path, path);
	}
	return fd;
}

/* Writes the content of a delta to an empty file. */
static bool copy_delta(struct store *store, const struct delta *delta, int to, struct error *err)
{
	struct delta_reader reader;
	struct copy copy = {.to = to, .from_file = true, .to_file = true, .skips_zeros = true};
	bool copied = true;
	delta_reader_init(&reader, store, delta);
	copy.chunk = mem_alloc(STORE_CHUNK);
	for (uint32_t i = 0; copied && i < delta->piece_count; i++) {
		const struct delta_piece *piece = &delta->pieces[i];
		if (piece->part == DELTA_HOLE) {
			copied = copy_hole(&copy, piece->length, err);
			continue;
		}
		copy.from = delta_reader_part(&reader, piece->part, err);
		copied = copy.from >= 0 && copy_extent(&copy, piece->at,
						   &(struct extent){piece->at, piece->length}, err);
	}
	free(copy.chunk);
	delta_reader_finish(&reader);
	if (copied && ftruncate(to, (off_t)delta->size) < 0) {
		copied = error_set_errno(err, errno, "writing");
	}
	return copied || error_prefix(err, "store %s: reading a delta", store->path);
}

/* The same, to a file without a name; -1 on an error. */
static int open_delta(struct store *store, const struct delta *delta, struct error *err)
{
	struct temp temp = {.fd = -1};
	if (!temp_create(store, &temp, err)) {
		return -1;
	}
	unlinkat(store->folder_fd, temp.name, 0);
	if (!copy_delta(store, delta, temp.fd, err)) {
		fd_close(&temp.fd);
	}
	return temp.fd;
}

static bool is_whole(struct store *store, const git_oid *content, struct stat *out_status)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	return fstatat(store->folder_fd, path, out_status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* If there is no delta either, the error is about the missing whole object. */
static bool read_delta(
	struct store *store, const git_oid *content, struct delta *delta, struct error *err)
{
	if (delta_read(store, content, delta, err)) {
		return true;
	}
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	return err->code == ERROR_NOT_FOUND &&
	       error_set_errno(err, ENOENT, "store %s: %s", store->path, path);
}

bool big_size(struct store *store, const git_oid *content, uint64_t *out_bytes, struct error *err)
{
	struct stat status;
	struct delta delta;
	if (is_whole(store, content, &status)) {
		*out_bytes = (uint64_t)status.st_size;
		return true;
	}
	if (!read_delta(store, content, &delta, err)) {
		return false;
	}
	*out_bytes = delta.size;
	delta_finish(&delta);
	return true;
}

/* Its file descriptor; -1 if it cannot be opened. */
static int open_content(
	struct store *store, const git_oid *content, uint64_t *out_size, struct error *err)
{
	struct stat status;
	struct delta delta;
	int fd = -1;
	if (is_whole(store, content, &status)) {
		*out_size = (uint64_t)status.st_size;
		return open_whole(store, content, err);
	}
	if (read_delta(store, content, &delta, err)) {
		*out_size = delta.size;
		fd = open_delta(store, &delta, err);
		delta_finish(&delta);
	}
	return fd;
}

static bool set_copy_error(struct store *store, const git_oid *content, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	return error_prefix(err, "store %s: %s", store->path, path);
}

static bool copy_whole_out(
	struct store *store, const git_oid *content, int fd, bool is_empty_file, struct error *err)
{
	struct extents all;
	uint64_t size = 0;
	int source ATTR_CLEANUP(fd_cleanup) = open_content(store, content, &size, err);
	if (source < 0) {
		return false;
	}
	if (is_empty_file && clone_file(source, fd)) {
		return true;
	}
	struct copy copy = {.from = source, .to = fd, .from_file = true, .to_file = is_empty_file};
	extents_of_all(&all, size);
	return copy_run(&copy, size, is_empty_file ? NULL : &all, err) ||
	       set_copy_error(store, content, err);
}

bool big_copy_out(struct store *store, const git_oid *content, int fd, struct error *err)
{
	struct stat to, whole;
	struct delta delta;
	bool is_empty_file = fstat(fd, &to) == 0 && S_ISREG(to.st_mode) && to.st_size == 0;
	if (!is_empty_file || is_whole(store, content, &whole)) {
		return copy_whole_out(store, content, fd, is_empty_file, err);
	}
	if (!read_delta(store, content, &delta, err)) {
		return false;
	}
	bool copied = copy_delta(store, &delta, fd, err);
	delta_finish(&delta);
	return copied;
}

bool store_big_extents(struct store *store, const struct store_entry *entry,
	struct extents *out_extents, struct error *err)
{
	git_oid content;
	uint64_t size = 0;
	store_big_content(entry, &content);
	int source ATTR_CLEANUP(fd_cleanup) = open_content(store, &content, &size, err);
	if (source >= 0) {
		extents_of_file(out_extents, source, size);
	}
	return source >= 0;
}

bool store_send_big(struct store *store, const struct store_entry *entry,
	const struct extents *extents, int fd, struct error *err)
{
	git_oid content;
	uint64_t size = 0;
	store_big_content(entry, &content);
	int source ATTR_CLEANUP(fd_cleanup) = open_content(store, &content, &size, err);
	if (source < 0) {
		return false;
	}
	struct copy copy = {.from = source, .to = fd, .from_file = true};
	return copy_run(&copy, extents->size, extents, err) || set_copy_error(store, &content, err);
}
