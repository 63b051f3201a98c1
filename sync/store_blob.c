/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/timestamp.h"
#include "sync/store_impl.h"

/* A file up to this size is read as a whole; a larger one is streamed. */
enum { WHOLE_MAX = 4 << 20 };

static bool set_changed(struct error *err)
{
	return error_set_reason(
		err, ERROR_UNAVAILABLE, "SYNC_BUSY", "the file changed while it was read");
}

static bool set_unreadable(int errnum, struct error *err)
{
	return error_set(err, ERROR_UNAVAILABLE, "reading: %s", strerror(errnum));
}

static bool is_same_file(const struct stat *before, const struct stat *after)
{
	return before->st_ino == after->st_ino && before->st_dev == after->st_dev &&
	       before->st_size == after->st_size &&
	       timespec_equals(&before->st_mtim, &after->st_mtim) &&
	       timespec_equals(&before->st_ctim, &after->st_ctim);
}

/*
 * A file that changes all the time (for example a log) would fill the store with useless versions.
 */
bool blob_is_unchanged(int fd, const struct stat *status, struct error *err)
{
	struct stat now;
	if (fstat(fd, &now) < 0) {
		return set_unreadable(errno, err);
	}
	return is_same_file(status, &now) || set_changed(err);
}

/* ---- storing ---- */

bool store_put_bytes(struct store *store, struct span bytes, git_oid *out_id, struct error *err)
{
	return object_put(store, GIT_OBJECT_BLOB, bytes, out_id, err);
}

/* Reads up to `size` bytes, fewer at the end of the file; -1 on an error. */
static ssize_t read_at(int fd, char *to, size_t size, off_t offset)
{
	size_t done = 0;
	while (done < size) {
		ssize_t count = pread(fd, to + done, size - done, offset + (off_t)done);
		if (count < 0 && errno == EINTR) {
			continue;
		}
		if (count <= 0) {
			return count < 0 ? -1 : (ssize_t)done;
		}
		done += (size_t)count;
	}
	return (ssize_t)done;
}

static bool put_whole(
	struct store *store, int fd, const struct stat *status, git_oid *out_id, struct error *err)
{
	size_t size = (size_t)status->st_size;
	char *content = mem_alloc(size + 1);
	ssize_t count = read_at(fd, content, size + 1, 0);
	bool put = false;
	if (count < 0) {
		set_unreadable(errno, err);
	} else if ((size_t)count != size) {
		set_changed(err);
	} else {
		put = blob_is_unchanged(fd, status, err) &&
		      store_put_bytes(store, (struct span){content, size}, out_id, err);
	}
	free(content);
	return put;
}

static bool stream_in(
	struct store *store, git_odb_stream *stream, int fd, uint64_t size, struct error *err)
{
	char *chunk = mem_alloc(STORE_CHUNK);
	uint64_t done = 0;
	while (done < size) {
		size_t want = size - done < STORE_CHUNK ? (size_t)(size - done) : STORE_CHUNK;
		ssize_t count = read_at(fd, chunk, want, (off_t)done);
		if (count < 0) {
			set_unreadable(errno, err);
			break;
		}
		if ((size_t)count != want) {
			set_changed(err);
			break;
		}
		git_forget_error(store->git);
		if (store->git->odb_stream_write(stream, chunk, want) < 0) {
			error_set_git(store->git, err, "writing to the store %s", store->path);
			break;
		}
		done += want;
	}
	free(chunk);
	return done == size;
}

static bool put_stream(
	struct store *store, int fd, const struct stat *status, git_oid *out_id, struct error *err)
{
	uint64_t size = (uint64_t)status->st_size;
	git_odb_stream *stream = NULL;
	git_forget_error(store->git);
	if (store->git->odb_open_wstream(&stream, store->odb, size, GIT_OBJECT_BLOB) < 0) {
		return error_set_git(store->git, err, "writing to the store %s", store->path);
	}
	bool put = stream_in(store, stream, fd, size, err) && blob_is_unchanged(fd, status, err);
	git_forget_error(store->git);
	if (put && store->git->odb_stream_finalize_write(out_id, stream) < 0) {
		put = error_set_git(store->git, err, "writing to the store %s", store->path);
	}
	store->git->odb_stream_free(stream);
	return put;
}

static bool put_content(struct store *store, int fd, const struct stat *status,
	const struct store_before *before, struct store_entry *entry, struct error *err)
{
	uint64_t size = (uint64_t)status->st_size;
	bool is_executable = status->st_mode & S_IXUSR;
	if (size > store->big_file_bytes) {
		git_oid content;
		if (!big_put_file(store, fd, status, before, &content, err)) {
			return false;
		}
		*entry = store_big_entry(&content, is_executable);
		return true;
	}
	entry->mode = is_executable ? ENTRY_EXECUTABLE : ENTRY_FILE;
	return size <= WHOLE_MAX ? put_whole(store, fd, status, &entry->id, err)
	                         : put_stream(store, fd, status, &entry->id, err);
}

bool store_put_file(struct store *store, int fd, struct stat *status, struct store_entry *out_entry,
	struct error *err)
{
	const struct store_before nothing = {.entry = {.mode = ENTRY_NONE}};
	return store_put_version(store, fd, status, &nothing, out_entry, err);
}

bool store_put_version(struct store *store, int fd, struct stat *status,
	const struct store_before *before, struct store_entry *out_entry, struct error *err)
{
	struct store_entry entry;
	struct stat after;
	if (!put_content(store, fd, status, before, &entry, err)) {
		return false;
	}
	if (fstat(fd, &after) < 0) {
		return set_unreadable(errno, err);
	}
	bool is_same = is_same_file(status, &after);
	*status = after;
	if (!is_same) {
		return set_changed(err);
	}
	*out_entry = entry;
	return true;
}

/* ---- reading ---- */

static bool set_read_error(struct store *store, const git_oid *id, struct error *err)
{
	char hex[GIT_OID_HEXSZ + 1];
	store->git->oid_tostr(hex, sizeof(hex), id);
	return error_set_git(store->git, err, "reading %s in the store %s", hex, store->path);
}

/* An object in a pack cannot be streamed; it is read as a whole. */
static bool copy_packed(struct store *store, const git_oid *id, int fd, struct error *err)
{
	git_odb_object *object = NULL;
	if (store->git->odb_read(&object, store->odb, id) < 0) {
		return set_read_error(store, id, err);
	}
	struct span content = {
		store->git->odb_object_data(object), store->git->odb_object_size(object)};
	bool copied = fd_write_all(fd, content, err);
	store->git->odb_object_free(object);
	return copied;
}

static bool copy_stream(
	struct store *store, git_odb_stream *stream, const git_oid *id, int fd, struct error *err)
{
	char *chunk = mem_alloc(STORE_CHUNK);
	bool copied = true;
	int count = 1;
	while (copied && count > 0) {
		count = store->git->odb_stream_read(stream, chunk, STORE_CHUNK);
		copied = count < 0 ? set_read_error(store, id, err)
		                   : fd_write_all(fd, (struct span){chunk, (size_t)count}, err);
	}
	free(chunk);
	return copied;
}

static bool copy_blob(struct store *store, const git_oid *id, int fd, struct error *err)
{
	git_odb_stream *stream = NULL;
	size_t size;
	git_object_t type;
	if (store->git->odb_read_header(&size, &type, store->odb, id) < 0) {
		return set_read_error(store, id, err);
	}
	if (size <= WHOLE_MAX ||
		store->git->odb_open_rstream(&stream, &size, &type, store->odb, id) < 0) {
		return copy_packed(store, id, fd, err);
	}
	bool copied = copy_stream(store, stream, id, fd, err);
	store->git->odb_stream_free(stream);
	return copied;
}

bool store_copy_out(struct store *store, const struct store_entry *entry, int fd, struct error *err)
{
	if (entry->mode == ENTRY_BIG) {
		git_oid content;
		store_big_content(entry, &content);
		return big_copy_out(store, &content, fd, err);
	}
	return copy_blob(store, &entry->id, fd, err);
}

bool store_read(
	struct store *store, const git_oid *id, size_t max, struct buf *out, struct error *err)
{
	size_t size;
	git_object_t type;
	if (store->git->odb_read_header(&size, &type, store->odb, id) < 0) {
		return set_read_error(store, id, err);
	}
	if (size > max) {
		return error_set(
			err, ERROR_LIMIT, "the file has %zu bytes; the limit is %zu", size, max);
	}
	git_odb_object *object = NULL;
	if (store->git->odb_read(&object, store->odb, id) < 0) {
		return set_read_error(store, id, err);
	}
	struct span content = {
		store->git->odb_object_data(object), store->git->odb_object_size(object)};
	bool read = buf_append(out, content, err);
	store->git->odb_object_free(object);
	return read;
}
