/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/store_impl.h"

/* The file: this header, the parts, the pieces; in the machine's byte order. */
struct header {
	char magic[8];
	uint32_t byte_order; // 1
	uint32_t part_count, piece_count;
	uint32_t unused;
	uint64_t size;
};

static const char magic[8] = "acpdelta";

void delta_path(const git_oid *content, char path[OBJECT_PATH_SIZE])
{
	object_path("delta", content, path);
}

void delta_finish(struct delta *delta)
{
	free(delta->pieces);
	*delta = (struct delta){0};
}

/* ---- reading ---- */

static bool read_exactly(int fd, void *to, size_t size)
{
	return size == 0 || read(fd, to, size) == (ssize_t)size;
}

/*
 * Whether the pieces are in order and make up the content. Does not check their ranges in the
 * parts.
 */
static bool pieces_are_good(const struct delta *delta)
{
	uint64_t at = 0;
	for (uint32_t i = 0; i < delta->piece_count; i++) {
		const struct delta_piece *piece = &delta->pieces[i];
		bool is_known = piece->part == DELTA_HOLE || piece->part < delta->part_count;
		if (!is_known || piece->offset != at || piece->length == 0 ||
			piece->length > delta->size - at || piece->at > INT64_MAX - piece->length) {
			return false;
		}
		at += piece->length;
	}
	return at == delta->size;
}

static bool read_file(int fd, struct delta *delta)
{
	struct header header;
	struct stat status;
	if (!read_exactly(fd, &header, sizeof(header)) || fstat(fd, &status) < 0 ||
		memcmp(header.magic, magic, sizeof(magic)) != 0 || header.byte_order != 1 ||
		header.part_count > DELTA_PARTS_MAX || header.piece_count > DELTA_PIECES_MAX ||
		header.size > INT64_MAX) {
		return false;
	}
	size_t parts = header.part_count * sizeof(delta->parts[0]);
	size_t pieces = header.piece_count * sizeof(delta->pieces[0]);
	delta->size = header.size;
	delta->part_count = header.part_count;
	delta->piece_count = header.piece_count;
	delta->pieces = mem_alloc(pieces + 1);
	return (size_t)status.st_size == sizeof(header) + parts + pieces &&
	       read_exactly(fd, delta->parts, parts) && read_exactly(fd, delta->pieces, pieces) &&
	       pieces_are_good(delta);
}

bool delta_read(
	struct store *store, const git_oid *content, struct delta *out_delta, struct error *err)
{
	struct delta delta = {0};
	char path[OBJECT_PATH_SIZE];
	delta_path(content, path);
	int fd ATTR_CLEANUP(fd_cleanup) = openat(store->folder_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		int errnum = errno;
		return errnum == ENOENT
		               ? error_set(err, ERROR_NOT_FOUND, "store %s has no %s", store->path,
					 path)
		               : error_set_errno(err, errnum, "store %s: %s", store->path, path);
	}
	if (!read_file(fd, &delta)) {
		delta_finish(&delta);
		return error_set(err, ERROR_SYSTEM, "store %s: %s is damaged", store->path, path);
	}
	*out_delta = delta;
	return true;
}

/* ---- the content ---- */

const struct delta_piece *delta_piece_at(const struct delta *delta, uint64_t offset)
{
	uint32_t low = 0, high = delta->piece_count;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		*(delta->pieces[middle].offset <= offset ? &low : &high) = middle;
	}
	return &delta->pieces[low];
}

void delta_reader_init(struct delta_reader *reader, struct store *store, const struct delta *delta)
{
	*reader = (struct delta_reader){.store = store, .delta = delta};
	for (size_t i = 0; i < ARRAY_LENGTH(reader->parts); i++) {
		reader->parts[i] = -1;
	}
}

void delta_reader_finish(struct delta_reader *reader)
{
	for (size_t i = 0; i < ARRAY_LENGTH(reader->parts); i++) {
		fd_close(&reader->parts[i]);
	}
}

int delta_reader_part(struct delta_reader *reader, uint32_t part, struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	if (reader->parts[part] < 0) {
		big_path(&reader->delta->parts[part], path);
		reader->parts[part] = openat(reader->store->folder_fd, path, O_RDONLY | O_CLOEXEC);
		if (reader->parts[part] < 0) {
			error_set_errno(err, errno, "store %s: %s", reader->store->path, path);
		}
	}
	return reader->parts[part];
}

bool delta_reader_read(struct delta_reader *reader, char *to, size_t len, uint64_t at)
{
	struct error ignored;
	while (len > 0) {
		const struct delta_piece *piece = delta_piece_at(reader->delta, at);
		uint64_t skipped = at - piece->offset;
		uint64_t left = piece->length - skipped;
		ssize_t count = (ssize_t)(left < len ? left : len);
		reader->reads++;
		if (piece->part == DELTA_HOLE) {
			memset(to, 0, (size_t)count);
		} else {
			int fd = delta_reader_part(reader, piece->part, &ignored);
			count = fd < 0 ? -1
			               : pread(fd, to, (size_t)count, (off_t)(piece->at + skipped));
		}
		if (count == 0 ||
			(count < 0 && (errno != EINTR || reader->parts[piece->part] < 0))) {
			return false;
		}
		count = count < 0 ? 0 : count;
		to += count;
		at += (uint64_t)count;
		len -= (size_t)count;
	}
	return true;
}

/* ---- writing ---- */

static bool continues(const struct delta_piece *last, const struct delta_piece *piece)
{
	return last->part == piece->part &&
	       (piece->part == DELTA_HOLE || last->at + last->length == piece->at);
}

bool delta_add(struct delta *delta, struct delta_piece piece)
{
	uint32_t count = delta->piece_count;
	piece.offset = delta->size;
	piece.unused = 0;
	if (count > 0 && continues(&delta->pieces[count - 1], &piece)) {
		delta->pieces[count - 1].length += piece.length;
	} else if (count == DELTA_PIECES_MAX) {
		return false;
	} else {
		if (count % 64 == 0) {
			delta->pieces =
				mem_realloc(delta->pieces, (count + 64) * sizeof(delta->pieces[0]));
		}
		delta->pieces[delta->piece_count++] = piece;
	}
	delta->size += piece.length;
	return true;
}

static bool write_file(int fd, const struct delta *delta, struct error *err)
{
	struct header header = {.byte_order = 1,
		.part_count = delta->part_count,
		.piece_count = delta->piece_count,
		.size = delta->size};
	memcpy(header.magic, magic, sizeof(magic));
	struct span parts = {
		(const char *)delta->parts, delta->part_count * sizeof(delta->parts[0])};
	struct span pieces = {
		(const char *)delta->pieces, delta->piece_count * sizeof(delta->pieces[0])};
	return fd_write_all(fd, (struct span){(const char *)&header, sizeof(header)}, err) &&
	       fd_write_all(fd, parts, err) && fd_write_all(fd, pieces, err);
}

bool delta_write(
	struct store *store, const git_oid *content, const struct delta *delta, struct error *err)
{
	struct temp temp = {.fd = -1};
	char path[OBJECT_PATH_SIZE];
	delta_path(content, path);
	bool written = temp_create(store, &temp, err) && write_file(temp.fd, delta, err) &&
	               temp_publish(store, &temp, path, err);
	temp_discard(store, &temp);
	return written || error_prefix(err, "store %s", store->path);
}
