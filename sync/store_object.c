/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/point.h"
#include "sync/id.h"
#include "sync/store_impl.h"

/*
 * Small objects are written here and not by libgit2: uncompressed, for below the size
 * of a block there is nothing to gain, and with a third of the system calls. What
 * is written is an ordinary loose object, a zlib stream of one stored block (RFC
 * 1950, RFC 1951), to be read by every git.
 */
enum { HEADER_MAX = 32, BLOCK_MAX = 65535, SMALL_MAX = BLOCK_MAX - HEADER_MAX };

void object_path(const char *folder, const git_oid *id, char path[OBJECT_PATH_SIZE])
{
	char hex[ID_TEXT_SIZE];
	id_text(hex, id);
	snprintf(path, OBJECT_PATH_SIZE, "%s/%.2s/%s", folder, hex, hex + 2);
}

static uint32_t adler_add(uint32_t sum, struct span bytes)
{
	enum { MODULUS = 65521, RUN = 5552 }; // so many bytes do not overflow 32 bits
	uint32_t a = sum & 0xffff;
	uint32_t b = sum >> 16;
	for (size_t i = 0; i < bytes.len;) {
		size_t end = bytes.len - i < RUN ? bytes.len : i + RUN;
		for (; i < end; i++) {
			a += (unsigned char)bytes.data[i];
			b += a;
		}
		a %= MODULUS;
		b %= MODULUS;
	}
	return b << 16 | a;
}

static const char *type_name(git_object_t type)
{
	return type == GIT_OBJECT_TREE ? "tree" : type == GIT_OBJECT_COMMIT ? "commit" : "blob";
}

static bool write_stream(int fd, git_object_t type, struct span content, struct error *err)
{
	char header[HEADER_MAX];
	size_t header_length =
		(size_t)snprintf(header, sizeof(header), "%s %zu", type_name(type), content.len) +
		1;
	uint32_t length = (uint32_t)(header_length + content.len);
	uint32_t sum = adler_add(adler_add(1, (struct span){header, header_length}), content);
	unsigned char begin[] = {0x78, 0x01, 0x01, (unsigned char)length,
		(unsigned char)(length >> 8), (unsigned char)~length,
		(unsigned char)(~length >> 8)};
	unsigned char end[] = {(unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
		(unsigned char)(sum >> 8), (unsigned char)sum};
	struct iovec pieces[] = {{begin, sizeof(begin)}, {header, header_length},
		{(char *)content.data, content.len}, {end, sizeof(end)}};
	ssize_t whole = (ssize_t)(sizeof(begin) + length + sizeof(end));
	ssize_t written = point("object.writing") ? -1 : writev(fd, pieces, ARRAY_LENGTH(pieces));
	if (written == whole) {
		return true;
	}
	return error_set_errno(err, written < 0 ? errno : ENOSPC, "writing");
}

/*
 * A loose object that is there is made young again, so that store_prune spares it.
 * One that a power failure left empty is removed: it is not there.
 */
static bool refresh_loose(struct store *store, const char *path)
{
	struct stat status;
	if (utimensat(store->folder_fd, path, NULL, 0) < 0 ||
		fstatat(store->folder_fd, path, &status, 0) < 0) {
		return false;
	}
	if (status.st_size == 0) {
		unlinkat(store->folder_fd, path, 0);
		return false;
	}
	return true;
}

static bool write_loose(struct store *store, git_object_t type, struct span content,
	const char *path, struct error *err)
{
	struct temp temp = {.fd = -1};
	bool written = temp_create(store, &temp, err) && write_stream(temp.fd, type, content, err);
	point("object.written");
	written = written && temp_rename(store, &temp, path, err);
	point("object.renamed");
	temp_discard(store, &temp);
	return written || error_prefix(err, "store %s", store->path);
}

static bool put_by_library(struct store *store, git_object_t type, struct span content,
	git_oid *out_id, struct error *err)
{
	return store->git->odb_write(out_id, store->odb, content.data, content.len, type) == 0 ||
	       error_set_git(store->git, err, "writing to the store %s", store->path);
}

bool object_put(struct store *store, git_object_t type, struct span content, git_oid *out_id,
	struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	git_oid id;
	content.data = content.len ? content.data : "";
	if (content.len > SMALL_MAX) {
		return put_by_library(store, type, content, out_id, err);
	}
	if (store->git->odb_hash(&id, content.data, content.len, type) < 0) {
		return error_set_git(store->git, err, "hashing");
	}
	object_path("objects", &id, path);
	if (!refresh_loose(store, path)) {
		/* In a pack it is the library that knows how to make it young again. */
		if (store->git->odb_exists_ext(store->odb, &id, GIT_ODB_LOOKUP_NO_REFRESH) == 1) {
			return put_by_library(store, type, content, out_id, err);
		}
		if (!write_loose(store, type, content, path, err)) {
			return false;
		}
	}
	*out_id = id;
	return true;
}
