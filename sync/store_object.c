/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/id.h"
#include "sync/store_impl.h"

/*
 * We write objects in memory ourselves, uncompressed: most of them live for a few turns, and
 * compressing takes ten times as long as everything else. It also needs a third of libgit2's system
 * calls. The result is an ordinary loose object, a zlib stream of stored blocks (RFC 1950, RFC
 * 1951), which every git can read.
 */
enum { HEADER_MAX = 32, BLOCK_MAX = 65535, WRITE_MAX = 64, BLOCK_HEADER_SIZE = 5 };

void object_path(const char *folder, const git_oid *id, char path[OBJECT_PATH_SIZE])
{
	char hex[ID_TEXT_SIZE];
	id_text(hex, id);
	text_whole(path, OBJECT_PATH_SIZE, "%s/%.2s/%s", folder, hex, hex + 2);
}

static uint32_t adler_add(uint32_t sum, struct span bytes)
{
	enum { MODULUS = 65521, RUN = 5552 }; // this many bytes do not overflow 32 bits
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

/* Pieces gathered for writev, with the headers of the blocks between them. */
struct gather {
	struct iovec pieces[WRITE_MAX];
	unsigned char headers[WRITE_MAX][BLOCK_HEADER_SIZE];
	size_t count, header_count;
	size_t length;
};

static void gather_add(struct gather *gather, const void *bytes, size_t length)
{
	gather->pieces[gather->count++] = (struct iovec){(void *)bytes, length};
	gather->length += length;
}

static void gather_block(struct gather *gather, size_t length, bool is_last)
{
	unsigned char *header = gather->headers[gather->header_count++];
	header[0] = is_last;
	header[1] = (unsigned char)length;
	header[2] = (unsigned char)(length >> 8);
	header[3] = (unsigned char)~header[1];
	header[4] = (unsigned char)~header[2];
	gather_add(gather, header, BLOCK_HEADER_SIZE);
}

static bool gather_write(struct gather *gather, int fd, struct error *err)
{
	ssize_t written =
		point("object.writing") ? -1 : writev(fd, gather->pieces, (int)gather->count);
	if (written != (ssize_t)gather->length) {
		return error_set_errno(err, written < 0 ? errno : ENOSPC, "writing");
	}
	*gather = (struct gather){.count = 0};
	return true;
}

static bool write_stream(int fd, git_object_t type, struct span content, struct error *err)
{
	static const unsigned char begin[] = {0x78, 0x01};
	char header[HEADER_MAX];
	size_t header_length =
		(size_t)snprintf(header, sizeof(header), "%s %zu", type_name(type), content.len) +
		1;
	uint32_t sum = adler_add(adler_add(1, (struct span){header, header_length}), content);
	unsigned char end[] = {(unsigned char)(sum >> 24), (unsigned char)(sum >> 16),
		(unsigned char)(sum >> 8), (unsigned char)sum};
	struct gather gather = {.count = 0};
	gather_add(&gather, begin, sizeof(begin));
	gather_block(&gather, header_length, false);
	gather_add(&gather, header, header_length);
	do {
		if (gather.count + 3 > WRITE_MAX && !gather_write(&gather, fd, err)) {
			return false;
		}
		size_t length = content.len < BLOCK_MAX ? content.len : BLOCK_MAX;
		gather_block(&gather, length, length == content.len);
		gather_add(&gather, content.data, length);
		content.data += length;
		content.len -= length;
	} while (content.len > 0);
	gather_add(&gather, end, sizeof(end));
	return gather_write(&gather, fd, err);
}

/*
 * Renews the age of an existing loose object, so that store_prune spares it. Removes one that a
 * power failure left empty, and reports it as missing.
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
	git_forget_error(store->git);
	return store->git->odb_write(out_id, store->odb, content.data, content.len, type) == 0 ||
	       error_set_git(store->git, err, "writing to the store %s", store->path);
}

bool object_put(struct store *store, git_object_t type, struct span content, git_oid *out_id,
	struct error *err)
{
	char path[OBJECT_PATH_SIZE];
	git_oid id;
	content.data = content.len ? content.data : "";
	if (store->git->odb_hash(&id, content.data, content.len, type) < 0) {
		return error_set_git(store->git, err, "hashing");
	}
	object_path("objects", &id, path);
	if (!refresh_loose(store, path)) {
		/* Only libgit2 knows how to renew the age of an object in a pack. */
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
