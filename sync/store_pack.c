/* SPDX-License-Identifier: MIT */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hex.h"
#include "base/point.h"
#include "base/sha1.h"
#include "base/text.h"
#include "sync/id_set.h"
#include "sync/store_impl.h"

/*
 * A pack (gitformat-pack(5)) without deltas and without compression, and an index of version 1.
 * Such an index has no checksums of single objects, which we would have to compute, and offsets of
 * 32 bits, which are enough.
 */
enum { BLOB = 3, VERSION = 2, FANOUT = 256, PATH_SIZE = 80 };

/* The format of the index: both in the order of bytes of the network. */
struct pack_entry {
	uint32_t offset;
	unsigned char id[GIT_OID_RAWSZ];
};

struct pack {
	struct temp temp;
	uint32_t length;
	struct pack_entry *entries; // owned
	uint32_t count, capacity;
	struct id_set ids;
};

static bool open_pack(struct store *store, struct pack *pack, struct error *err)
{
	static const char room[12]; // for the header, which has the count
	if (!temp_create(store, &pack->temp, err)) {
		return false;
	}
	pack->length = sizeof(room);
	return fd_write_all(pack->temp.fd, (struct span){room, sizeof(room)}, err) ||
	       error_prefix(err, "store %s", store->path);
}

static void close_pack(struct store *store, struct pack *pack)
{
	temp_discard(store, &pack->temp);
	free(pack->entries);
	id_set_finish(&pack->ids);
	*pack = (struct pack){.temp = {.fd = -1}};
}

bool pack_begin(struct store *store, struct error *err)
{
	store->pack = mem_alloc_zero(sizeof(*store->pack));
	store->pack->temp.fd = -1;
	if (!open_pack(store, store->pack, err)) {
		pack_drop(store);
		return false;
	}
	return true;
}

void pack_drop(struct store *store)
{
	if (store->pack) {
		close_pack(store, store->pack);
		free(store->pack);
		store->pack = NULL;
	}
}

/* ---- adding ---- */

bool pack_has(const struct store *store, const git_oid *id)
{
	return store->pack && id_set_has(&store->pack->ids, id);
}

/* The type and the size: four bits in the first byte, seven in each further one. */
static size_t format_head(unsigned char head[16], size_t size)
{
	size_t length = 0;
	head[0] = (unsigned char)(BLOB << 4 | (size & 15));
	for (size >>= 4; size > 0; size >>= 7) {
		head[length++] |= 0x80;
		head[length] = (unsigned char)(size & 0x7f);
	}
	return length + 1;
}

static void add_entry(struct pack *pack, const git_oid *id)
{
	if (pack->count == pack->capacity) {
		pack->capacity = pack->capacity ? pack->capacity * 2 : 1024;
		pack->entries = mem_realloc(pack->entries, pack->capacity * sizeof(*pack->entries));
	}
	struct pack_entry *entry = &pack->entries[pack->count++];
	entry->offset = htobe32(pack->length);
	memcpy(entry->id, id->id, sizeof(entry->id));
	id_set_add(&pack->ids, id);
}

static bool publish(struct store *store, struct pack *pack, struct error *err);

bool pack_add(struct store *store, struct span content, const git_oid *id, struct error *err)
{
	struct pack *pack = store->pack;
	unsigned char head[16];
	if (pack->length + content.len > store->pack_bytes_max && pack->count > 0) {
		bool published = publish(store, pack, err);
		close_pack(store, pack);
		if (!published || !open_pack(store, pack, err)) {
			return false;
		}
	}
	struct span before = {(const char *)head, format_head(head, content.len)};
	size_t written = object_write(pack->temp.fd, before, (struct span){0}, content, err);
	if (written == 0) {
		return error_prefix(err, "store %s", store->path);
	}
	add_entry(pack, id);
	pack->length += (uint32_t)written;
	return true;
}

/* ---- publishing ---- */

/* The checksum begins with the count, so it can only be computed at the end. */
static bool write_count(struct pack *pack, unsigned char out_sum[SHA1_SIZE], struct error *err)
{
	struct sha1 sha1;
	uint32_t numbers[] = {htobe32(VERSION), htobe32(pack->count)};
	char *chunk = mem_alloc(STORE_CHUNK);
	bool written = pwrite(pack->temp.fd, "PACK", 4, 0) == 4 &&
	               pwrite(pack->temp.fd, numbers, sizeof(numbers), 4) == sizeof(numbers);
	off_t at = 0;
	sha1_begin(&sha1);
	while (written && at < (off_t)pack->length) {
		ssize_t count = pread(pack->temp.fd, chunk, STORE_CHUNK, at);
		written = count > 0;
		sha1_add(&sha1, (struct span){chunk, count > 0 ? (size_t)count : 0});
		at += count;
	}
	int errnum = errno;
	free(chunk);
	sha1_end(&sha1, out_sum);
	return written ? fd_write_all(pack->temp.fd,
				 (struct span){(const char *)out_sum, SHA1_SIZE}, err)
	               : error_set_errno(err, errnum, "writing a pack");
}

static int compare_entries(const void *a, const void *b)
{
	const struct pack_entry *one = a, *other = b;
	return memcmp(one->id, other->id, sizeof(one->id));
}

static bool put(int fd, struct sha1 *sha1, const void *bytes, size_t length, struct error *err)
{
	struct span span = {bytes, length};
	sha1_add(sha1, span);
	return fd_write_all(fd, span, err);
}

static bool write_index(
	struct pack *pack, int fd, const unsigned char sum[SHA1_SIZE], struct error *err)
{
	uint32_t fanout[FANOUT];
	struct sha1 sha1;
	unsigned char own_sum[SHA1_SIZE];
	uint32_t at = 0;
	qsort(pack->entries, pack->count, sizeof(*pack->entries), compare_entries);
	for (int i = 0; i < FANOUT; i++) {
		while (at < pack->count && pack->entries[at].id[0] <= i) {
			at++;
		}
		fanout[i] = htobe32(at);
	}
	sha1_begin(&sha1);
	if (!put(fd, &sha1, fanout, sizeof(fanout), err) ||
		!put(fd, &sha1, pack->entries, pack->count * sizeof(*pack->entries), err) ||
		!put(fd, &sha1, sum, SHA1_SIZE, err)) {
		return false;
	}
	sha1_end(&sha1, own_sum);
	return fd_write_all(fd, (struct span){(const char *)own_sum, SHA1_SIZE}, err);
}

/*
 * The pack appears first: without its index it counts as rubbish (store_prune.c), but the index
 * must not be there without the pack.
 */
static bool show(struct store *store, struct pack *pack, struct temp *index,
	const unsigned char sum[SHA1_SIZE], struct error *err)
{
	char hex[2 * SHA1_SIZE + 1], path[PATH_SIZE], index_path[PATH_SIZE];
	hex_write(hex, sum, SHA1_SIZE);
	text_whole(path, sizeof(path), "objects/pack/pack-%s.pack", hex);
	text_whole(index_path, sizeof(index_path), "objects/pack/pack-%s.idx", hex);
	point("pack.written");
	bool shown = temp_publish(store, &pack->temp, path, err);
	point("pack.renamed");
	shown = shown && temp_publish(store, index, index_path, err);
	point("pack.shown");
	if (!shown) {
		unlinkat(store->folder_fd, index_path, 0);
		unlinkat(store->folder_fd, path, 0);
	}
	return shown;
}

static bool publish(struct store *store, struct pack *pack, struct error *err)
{
	struct temp index = {.fd = -1};
	unsigned char sum[SHA1_SIZE];
	bool shown = temp_create(store, &index, err) && write_count(pack, sum, err) &&
	             write_index(pack, index.fd, sum, err) && show(store, pack, &index, sum, err);
	temp_discard(store, &index);
	if (!shown) {
		return error_prefix(err, "store %s", store->path);
	}
	git_forget_error(store->git);
	return store->git->odb_refresh(store->odb) == 0 ||
	       error_set_git(store->git, err, "opening a pack in the store %s", store->path);
}

bool pack_end(struct store *store, struct error *err)
{
	bool ended = store->pack->count == 0 || publish(store, store->pack, err);
	pack_drop(store);
	return ended;
}
