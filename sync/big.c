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

/* ---- a copy, and the hash of it ---- */

/* What is read is hashed, and written to `to` unless that is -1. */
struct copy {
	int from, to;
	bool is_sparse; // `from` can be asked for its holes
	struct hash *hash;
	char *chunk; // owned, STORE_CHUNK bytes
};

static bool add_chunk(struct copy *copy, size_t length, struct error *err)
{
	struct span bytes = {copy->chunk, length};
	if (copy->hash && !hash_add(copy->hash, bytes, err)) {
		return false;
	}
	return copy->to < 0 || fd_write_all(copy->to, bytes, err);
}

static bool copy_data(struct copy *copy, uint64_t length, struct error *err)
{
	while (length > 0) {
		size_t want = length < STORE_CHUNK ? (size_t)length : STORE_CHUNK;
		ssize_t count = read(copy->from, copy->chunk, want);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count < 0) {
			int errnum = errno;
			return error_set(err, ERROR_UNAVAILABLE, "reading: %s", strerror(errnum));
		}
		if (count == 0) {
			return error_set(err, ERROR_UNAVAILABLE,
				"the file became shorter while it was read");
		}
		if (!add_chunk(copy, (size_t)count, err)) {
			return false;
		}
		length -= (uint64_t)count;
	}
	return true;
}

/* A hole stays one; it is hashed as the zeros it reads as. */
static bool copy_hole(struct copy *copy, uint64_t length, struct error *err)
{
	if (copy->to >= 0 && lseek(copy->to, (off_t)length, SEEK_CUR) < 0) {
		return error_set_errno(err, errno, "writing");
	}
	memset(copy->chunk, 0, STORE_CHUNK);
	while (copy->hash && length > 0) {
		size_t count = length < STORE_CHUNK ? (size_t)length : STORE_CHUNK;
		if (!hash_add(copy->hash, (struct span){copy->chunk, count}, err)) {
			return false;
		}
		length -= count;
	}
	return true;
}

static off_t seek_or_end(int fd, off_t at, int whence, off_t end)
{
	off_t found = lseek(fd, at, whence);
	return found < 0 || found > end ? end : found;
}

static bool copy_sparse(struct copy *copy, off_t size, struct error *err)
{
	off_t at = 0;
	while (at < size) {
		off_t data = seek_or_end(copy->from, at, SEEK_DATA, size);
		off_t hole = data < size ? seek_or_end(copy->from, data, SEEK_HOLE, size) : size;
		if (!copy_hole(copy, (uint64_t)(data - at), err)) {
			return false;
		}
		if (lseek(copy->from, data, SEEK_SET) < 0) {
			return error_set_errno(err, errno, "reading");
		}
		if (!copy_data(copy, (uint64_t)(hole - data), err)) {
			return false;
		}
		at = hole;
	}
	return true;
}

static bool copy_run(struct copy *copy, uint64_t size, struct error *err)
{
	copy->chunk = mem_alloc(STORE_CHUNK);
	bool copied =
		copy->is_sparse ? copy_sparse(copy, (off_t)size, err) : copy_data(copy, size, err);
	free(copy->chunk);
	if (copied && copy->is_sparse && copy->to >= 0 && ftruncate(copy->to, (off_t)size) < 0) {
		copied = error_set_errno(err, errno, "writing");
	}
	return copied;
}

/* Where the file system shares blocks, the copy is made in no time, and is one instant's. */
static bool clone_file(int from, int to)
{
	return ioctl(to, FICLONE, from) == 0;
}

/* ---- in ---- */

static bool publish(
	struct store *store, struct temp *temp, const git_oid *content, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	big_path(content, path);
	if (utimensat(store->folder_fd, path, NULL, 0) == 0) {
		return true; // known; and young again for store_prune
	}
	if (point("big.copied") || fchmod(temp->fd, 0400) < 0) {
		return error_set_errno(err, errno, "store %s: %s", store->path, temp->name);
	}
	return temp_publish(store, temp, path, err);
}

static bool hash_copy(struct store *store, struct copy *copy, uint64_t size, git_oid *out_content,
	struct error *err)
{
	struct hash hash;
	if (!hash_init(&hash, store, size, err)) {
		return false;
	}
	copy->hash = &hash;
	git_oid id;
	bool hashed = copy_run(copy, size, err) && hash_end(&hash, &id, err);
	hash_finish(&hash);
	if (hashed) {
		struct store_entry entry = {ENTRY_BIG, id};
		store_big_content(&entry, out_content);
	}
	return hashed;
}

bool big_put_file(struct store *store, int fd, const struct stat *status, git_oid *out_content,
	struct error *err)
{
	struct temp temp = {.fd = -1};
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	struct copy copy = {.from = fd, .to = temp.fd, .is_sparse = true};
	if (clone_file(fd, temp.fd)) {
		copy = (struct copy){.from = temp.fd, .to = -1, .is_sparse = true};
	}
	bool put = hash_copy(store, &copy, (uint64_t)status->st_size, out_content, err) &&
	           blob_is_unchanged(fd, status, err) && publish(store, &temp, out_content, err);
	temp_discard(store, &temp);
	return put;
}

bool store_put_big(
	struct store *store, int fd, uint64_t size, struct store_entry *entry, struct error *err)
{
	struct temp temp = {.fd = -1};
	git_oid announced, got;
	store_big_content(entry, &announced);
	if (!temp_create(store, &temp, err)) {
		return false;
	}
	struct copy copy = {.from = fd, .to = temp.fd};
	bool put = hash_copy(store, &copy, size, &got, err) && publish(store, &temp, &got, err);
	temp_discard(store, &temp);
	if (put && !id_equal(&got, &announced)) {
		*entry = store_big_entry(&got, store_entry_is_executable(entry));
	}
	return put;
}

/* ---- out ---- */

bool big_copy_out(struct store *store, const git_oid *content, int fd, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	struct stat from, to;
	big_path(content, path);
	int source ATTR_CLEANUP(fd_cleanup) = openat(store->folder_fd, path, O_RDONLY | O_CLOEXEC);
	if (source < 0 || fstat(source, &from) < 0 || fstat(fd, &to) < 0) {
		return error_set_errno(err, errno, "store %s: %s", store->path, path);
	}
	bool is_empty_file = S_ISREG(to.st_mode) && to.st_size == 0;
	if (is_empty_file && clone_file(source, fd)) {
		return true;
	}
	struct copy copy = {.from = source, .to = fd, .is_sparse = is_empty_file};
	return copy_run(&copy, (uint64_t)from.st_size, err) ||
	       error_prefix(err, "store %s: %s", store->path, path);
}
