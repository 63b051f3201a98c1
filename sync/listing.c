/* SPDX-License-Identifier: MIT */
#include "sync/listing.h"

#include <stdlib.h>
#include <string.h>

void listing_init(struct listing *listing)
{
	*listing = (struct listing){0};
	listing_add(listing, LISTED_NONE, SPAN_LITERAL(""), LISTED_FOLDER);
}

void listing_finish(struct listing *listing)
{
	free(listing->items);
	free(listing->names);
	*listing = (struct listing){0};
}

static int64_t nanoseconds(const struct timespec *time)
{
	return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

void listed_set_status(struct listed *listed, const struct stat *status)
{
	listed->size = (uint64_t)status->st_size;
	listed->inode = status->st_ino;
	listed->device = status->st_dev;
	listed->mtime_ns = nanoseconds(&status->st_mtim);
	listed->ctime_ns = nanoseconds(&status->st_ctim);
}

bool listed_matches(const struct listed *listed, const struct stat *status)
{
	return listed->size == (uint64_t)status->st_size && listed->inode == status->st_ino &&
	       listed->device == status->st_dev &&
	       listed->mtime_ns == nanoseconds(&status->st_mtim) &&
	       listed->ctime_ns == nanoseconds(&status->st_ctim);
}

static uint32_t add_name(struct listing *listing, struct span name)
{
	if (listing->names_length + name.len + 1 > listing->names_capacity) {
		listing->names_capacity = listing->names_capacity * 5 / 4 + name.len + 4096;
		listing->names = mem_realloc(listing->names, listing->names_capacity);
	}
	size_t at = listing->names_length;
	memcpy(listing->names + at, name.data, name.len);
	listing->names[at + name.len] = '\0';
	listing->names_length += name.len + 1;
	return (uint32_t)at;
}

uint32_t listing_add(struct listing *listing, uint32_t parent, struct span name, uint32_t mode)
{
	if (listing->count == listing->capacity) {
		listing->capacity = listing->capacity * 5 / 4 + 256;
		listing->items =
			mem_realloc(listing->items, listing->capacity * sizeof(listing->items[0]));
	}
	uint32_t index = listing->count++;
	listing->items[index] = (struct listed){
		.name = add_name(listing, name),
		.name_length = (uint16_t)name.len,
		.mode = mode,
		.cached = LISTED_NONE,
		.parent = parent,
	};
	if (parent != LISTED_NONE) {
		struct listed *folder = &listing->items[parent];
		folder->first = folder->children == 0 ? index : folder->first;
		folder->children++;
	}
	return index;
}

bool listing_path(const struct listing *listing, uint32_t index, char *path, size_t size)
{
	size_t length = 0;
	for (uint32_t i = index; i != 0; i = listing->items[i].parent) {
		length += listing->items[i].name_length + 1U;
	}
	if (length == 0 || length > size) {
		path[0] = '\0';
		return length == 0;
	}
	char *at = path + length;
	for (uint32_t i = index; i != 0; i = listing->items[i].parent) {
		size_t part = listing->items[i].name_length;
		*--at = '/';
		at -= part;
		memcpy(at, listing_name(listing, i), part);
	}
	path[length - 1] = '\0';
	return true;
}

int listing_compare_names(const char *a, bool a_is_folder, const char *b, bool b_is_folder)
{
	size_t a_length = strlen(a);
	size_t b_length = strlen(b);
	size_t common = a_length < b_length ? a_length : b_length;
	int order = memcmp(a, b, common);
	if (order != 0) {
		return order;
	}
	unsigned char a_next = (unsigned char)a[common];
	unsigned char b_next = (unsigned char)b[common];
	a_next = a_length == common && a_is_folder ? '/' : a_next;
	b_next = b_length == common && b_is_folder ? '/' : b_next;
	return (a_next > b_next) - (a_next < b_next);
}
