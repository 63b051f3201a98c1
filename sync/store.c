/* SPDX-License-Identifier: MIT */
#include "sync/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sync/id.h"
#include "sync/store_impl.h"

const git_oid store_empty_tree = {{0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5,
	0x4b, 0xf8, 0xd6, 0x92, 0x88, 0xfb, 0xee, 0x49, 0x04}};

/* ---- entries ---- */

bool store_entry_equal(const struct store_entry *a, const struct store_entry *b)
{
	return a->mode == b->mode && (a->mode == ENTRY_NONE || id_equal(&a->id, &b->id));
}

bool store_entry_is_file(const struct store_entry *entry)
{
	return entry->mode == ENTRY_FILE || entry->mode == ENTRY_EXECUTABLE ||
	       entry->mode == ENTRY_BIG;
}

bool store_entry_is_executable(const struct store_entry *entry)
{
	return entry->mode == ENTRY_EXECUTABLE ||
	       (entry->mode == ENTRY_BIG && (entry->id.id[GIT_OID_RAWSZ - 1] & 1));
}

bool store_entry_same_content(const struct store_entry *a, const struct store_entry *b)
{
	git_oid left = a->id;
	git_oid right = b->id;
	if (!store_entry_is_file(a) || !store_entry_is_file(b) ||
		(a->mode == ENTRY_BIG) != (b->mode == ENTRY_BIG)) {
		return false;
	}
	if (a->mode == ENTRY_BIG) {
		store_big_content(a, &left);
		store_big_content(b, &right);
	}
	return memcmp(&left, &right, sizeof(left)) == 0;
}

/* ---- opening ---- */

static const char *objects_path(const struct store *store, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/objects", store->path);
	return length > 0 && (size_t)length < size ? path : NULL;
}

/*
 * Compression of streamed files: little time is spent on it. At level 0 libgit2 1.5 writes an
 * invalid zlib stream, which it cannot read back.
 */
enum { LOOSE_COMPRESSION = 1, LOOSE_PRIORITY = 1, PACK_PRIORITY = 2 };

static bool open_odb(struct store *store, struct error *err)
{
	char path[PATH_MAX];
	if (!objects_path(store, path, sizeof(path))) {
		return error_set(err, ERROR_CONFIG, "store %s: the path is too long", store->path);
	}
	const struct git *git = store->git;
	git_odb_backend *loose = NULL;
	git_odb_backend *packs = NULL;
	if (git->odb_new(&store->odb) < 0 ||
		git->odb_backend_loose(&loose, path, LOOSE_COMPRESSION, 0, 0700, 0400) < 0 ||
		git->odb_add_backend(store->odb, loose, LOOSE_PRIORITY) < 0 ||
		git->odb_backend_pack(&packs, path) < 0 ||
		git->odb_add_backend(store->odb, packs, PACK_PRIORITY) < 0) {
		return error_set_git(git, err, "opening the objects of store %s", store->path);
	}
	return hash_odb_create(git, &store->hasher, err);
}

static bool open_repository(struct store *store, struct error *err)
{
	const struct git *git = store->git;
	unsigned flags = GIT_REPOSITORY_OPEN_NO_SEARCH | GIT_REPOSITORY_OPEN_BARE |
	                 GIT_REPOSITORY_OPEN_NO_DOTGIT;
	if (git->repository_open_ext(&store->repository, store->path, flags, NULL) < 0) {
		return error_set_git(git, err, "opening the store %s", store->path);
	}
	if (git->repository_set_odb(store->repository, store->odb) < 0) {
		return error_set_git(git, err, "opening the objects of store %s", store->path);
	}
	return true;
}

/* Its id is a constant; no other code writes it. */
static bool put_empty_tree(struct store *store, struct error *err)
{
	git_oid id;
	if (!object_put(store, GIT_OBJECT_TREE, (struct span){0}, &id, err)) {
		return false;
	}
	assert(memcmp(&id, &store_empty_tree, sizeof(id)) == 0);
	return true;
}

bool store_open(struct store *store, const char *path, uint64_t big_file_bytes, struct error *err)
{
	*store = (struct store){.folder_fd = -1,
		.big_fd = -1,
		.big_file_bytes = big_file_bytes ? big_file_bytes : STORE_BIG_FILE_DEFAULT};
	store->git = git_open(err);
	if (!store->git) {
		return false;
	}
	git_keep_loaded(); // the pool's threads use libgit2
	store->path = mem_strdup(path);
	if (!folder_open(store, err) || !open_odb(store, err) || !open_repository(store, err) ||
		!put_empty_tree(store, err)) {
		store_close(store);
		return false;
	}
	folder_sweep(store);
	return true;
}

void store_close(struct store *store)
{
	if (!store->git) {
		return;
	}
	store->git->repository_free(store->repository);
	store->git->odb_free(store->odb);
	store->git->odb_free(store->hasher);
	fd_close(&store->big_fd);
	fd_close(&store->folder_fd);
	free(store->path);
	git_close();
	*store = (struct store){.folder_fd = -1, .big_fd = -1};
}

/* ---- queries ---- */

bool store_has(struct store *store, const struct store_entry *entry)
{
	if (entry->mode != ENTRY_BIG) {
		return store->git->odb_exists(store->odb, &entry->id) == 1;
	}
	git_oid content;
	store_big_content(entry, &content);
	return big_has(store, &content, false);
}

bool store_size(struct store *store, const struct store_entry *entry, uint64_t *out_bytes,
	struct error *err)
{
	if (entry->mode == ENTRY_BIG) {
		git_oid content;
		store_big_content(entry, &content);
		return big_size(store, &content, out_bytes, err);
	}
	size_t size;
	git_object_t type;
	if (store->git->odb_read_header(&size, &type, store->odb, &entry->id) < 0) {
		return error_set_git(store->git, err, "store %s", store->path);
	}
	*out_bytes = size;
	return true;
}
