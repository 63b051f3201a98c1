/* SPDX-License-Identifier: MIT */
#include "sync/stat_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/machine.h"
#include "sync/store_impl.h"

struct header {
	char magic[8];
	char boot[BOOT_ID_SIZE]; // objects that were not synced before a power failure may be lost
	uint64_t big_file_bytes; // the limit decides how a tree stores a file
	uint64_t checksum;       // of everything after the header
	uint64_t names_length;
	uint32_t count;
	uint32_t item_size;
};

static const char magic[8] = "acpstat";

/* Detects a torn or damaged file, not an attack: eight bytes at a time. */
static uint64_t checksum_add(uint64_t sum, const void *bytes, size_t length)
{
	const char *at = bytes;
	uint64_t word;
	for (; length >= sizeof(word); length -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
		sum ^= sum >> 32;
	}
	for (; length > 0; length--, at++) {
		sum = (sum ^ (unsigned char)*at) * 0x9e3779b97f4a7c15U;
	}
	return sum;
}

static uint64_t checksum(const struct listing *listing)
{
	uint64_t sum =
		checksum_add(1, listing->items, (size_t)listing->count * sizeof(listing->items[0]));
	return checksum_add(sum, listing->names, listing->names_length);
}

static bool cache_path(const char *name, char path[PATH_MAX])
{
	int length = snprintf(path, PATH_MAX, "cache/%s", name);
	return length < PATH_MAX && !strchr(name, '/');
}

static bool map_file(struct stat_cache *cache, struct store *store, const char *name)
{
	char path[PATH_MAX];
	struct stat status;
	if (!cache_path(name, path)) {
		return false;
	}
	int fd ATTR_CLEANUP(fd_cleanup) = openat(store->folder_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0 || (size_t)status.st_size < sizeof(struct header)) {
		return false;
	}
	void *map = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		return false;
	}
	cache->map = map;
	cache->map_size = (size_t)status.st_size;
	return true;
}

static bool read_map(struct stat_cache *cache, const struct store *store)
{
	const struct header *header = cache->map;
	if (memcmp(header->magic, magic, sizeof(magic)) != 0 ||
		header->big_file_bytes != store->big_file_bytes || header->count == 0 ||
		header->item_size != sizeof(struct listed)) {
		return false;
	}
	size_t items = (size_t)header->count * sizeof(struct listed);
	if (cache->map_size - sizeof(*header) < items ||
		cache->map_size - sizeof(*header) - items != header->names_length) {
		return false;
	}
	char *bytes = cache->map;
	cache->listing = (struct listing){
		.items = (struct listed *)(void *)(bytes + sizeof(*header)),
		.count = header->count,
		.names = bytes + sizeof(*header) + items,
		.names_length = header->names_length,
	};
	return checksum(&cache->listing) == header->checksum;
}

void stat_cache_open(struct stat_cache *cache, struct store *store, const char *name)
{
	*cache = (struct stat_cache){0};
	if (!name || !map_file(cache, store, name)) {
		return;
	}
	char boot[BOOT_ID_SIZE];
	boot_id_read(boot);
	if (!read_map(cache, store) ||
		memcmp(((const struct header *)cache->map)->boot, boot, BOOT_ID_SIZE) != 0 ||
		store->git->odb_exists(store->odb, &cache->listing.items[0].id) != 1) {
		stat_cache_close(cache);
	}
}

void stat_cache_close(struct stat_cache *cache)
{
	if (cache->map) {
		munmap(cache->map, cache->map_size);
	}
	*cache = (struct stat_cache){0};
}

bool stat_cache_write(
	struct store *store, const char *name, const struct listing *listing, struct error *err)
{
	char path[PATH_MAX];
	struct temp temp = {.fd = -1};
	struct header header = {
		.big_file_bytes = store->big_file_bytes,
		.checksum = checksum(listing),
		.names_length = listing->names_length,
		.count = listing->count,
		.item_size = sizeof(struct listed),
	};
	memcpy(header.magic, magic, sizeof(magic));
	if (!cache_path(name, path)) {
		return error_set(err, ERROR_CONFIG, "\"%s\" is not a name for a cache", name);
	}
	struct span items = {
		(const char *)listing->items, (size_t)listing->count * sizeof(listing->items[0])};
	boot_id_read(header.boot);
	bool written =
		temp_create(store, &temp, err) &&
		fd_write_all(temp.fd, (struct span){(const char *)&header, sizeof(header)}, err) &&
		fd_write_all(temp.fd, items, err) &&
		fd_write_all(temp.fd, (struct span){listing->names, listing->names_length}, err);
	written = written && temp_rename(store, &temp, path, err);
	temp_discard(store, &temp);
	return written;
}

bool stat_cache_tree(struct store *store, const char *name, git_oid *out_tree)
{
	struct stat_cache cache = {0};
	bool found = map_file(&cache, store, name) && read_map(&cache, store);
	if (found) {
		*out_tree = cache.listing.items[0].id;
	}
	stat_cache_close(&cache);
	return found;
}
