/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/lock_file.h"
#include "base/text.h"
#include "sync/store_impl.h"
#include "sync/store_mark.h"

struct pruning {
	struct store *store;
	struct id_set reachable;
	time_t cutoff; // objects written or used since then stay
	long long deadline_ms;
	struct store_pruned pruned;
};

typedef void on_name(struct pruning *pruning, const char *folder, const char *name);

static bool is_late(const struct pruning *pruning)
{
	return pruning->deadline_ms > 0 && clock_now_ms() >= pruning->deadline_ms;
}

static void each_name(struct pruning *pruning, const char *folder, on_name *on, const char *suffix)
{
	int fd = openat(pruning->store->folder_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	if (!stream) {
		fd_close(&fd);
		return;
	}
	struct dirent *entry;
	while (!is_late(pruning) && (entry = readdir(stream))) {
		size_t length = strlen(entry->d_name);
		size_t end = strlen(suffix);
		if (length > end && strcmp(entry->d_name + length - end, suffix) == 0) {
			on(pruning, folder, entry->d_name);
		}
	}
	closedir(stream);
}

/* ---- single objects ---- */

static bool is_old(const struct pruning *pruning, const char *path, struct stat *status)
{
	return fstatat(pruning->store->folder_fd, path, status, AT_SYMLINK_NOFOLLOW) == 0 &&
	       status->st_mtime < pruning->cutoff;
}

/*
 * Another process that stores an existing object renews its age, perhaps between our check and our
 * removal. So we first move the object away, check again, and move it back if it is young now. A
 * process that comes after the move does not find it and writes it.
 */
static void remove_if_old(struct pruning *pruning, const char *path)
{
	struct temp temp = {.fd = -1};
	struct error err;
	struct stat status;
	int at = pruning->store->folder_fd;
	if (!is_old(pruning, path, &status) || !temp_create(pruning->store, &temp, &err)) {
		return;
	}
	if (renameat(at, path, at, temp.name) == 0) {
		if (is_old(pruning, temp.name, &status)) {
			pruning->pruned.objects++;
			pruning->pruned.bytes += (uint64_t)status.st_blocks * 512;
		} else if (linkat(at, temp.name, at, path, 0) < 0 && errno != EEXIST) {
			fd_close(&temp.fd); // it cannot go back, so keep it in tmp
		}
	}
	temp_discard(pruning->store, &temp);
}

/* `folder` is "objects/xx", "big/xx" or "delta/xx". */
static void prune_object(struct pruning *pruning, const char *folder, const char *name)
{
	char hex[GIT_OID_HEXSZ + 1], path[PATH_MAX];
	git_oid id;
	if (strlen(name) != GIT_OID_HEXSZ - 2) {
		return;
	}
	text_whole(hex, sizeof(hex), "%s%s", folder + strlen(folder) - 2, name);
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	if (pruning->store->git->oid_fromstr(&id, hex) == 0 &&
		!id_set_has(&pruning->reachable, &id)) {
		remove_if_old(pruning, path);
	}
}

static void prune_folder(struct pruning *pruning, const char *folder, const char *name)
{
	char path[PATH_MAX];
	if (strlen(name) == 2 && name[0] != '.') {
		text_whole(path, sizeof(path), "%s/%s", folder, name);
		each_name(pruning, path, prune_object, "");
	}
}

/* ---- packs ---- */

/* Larger blobs are in no pack of store_pack.c. */
enum { SHRINK_BLOB_MAX = 4 << 20 };

struct pack_use {
	struct pruning *pruning;
	git_odb *odb; // the pack alone
	size_t objects, used;
	uint64_t used_bytes; // of those that were written again
};

static int count_packed(const git_oid *id, void *data)
{
	struct pack_use *use = data;
	use->objects++;
	use->used += id_set_has(&use->pruning->reachable, id);
	return 0;
}

/* Opens a pack and counts its objects. */
static bool open_use(struct pack_use *use, struct pruning *pruning, const char *index_path)
{
	const struct git *git = pruning->store->git;
	git_odb_backend *pack = NULL;
	char path[PATH_MAX];
	*use = (struct pack_use){.pruning = pruning};
	text_whole(path, sizeof(path), "%s/%s", pruning->store->path, index_path);
	return git->odb_new(&use->odb) == 0 && git->odb_backend_one_pack(&pack, path) == 0 &&
	       git->odb_add_backend(use->odb, pack, 1) == 0 &&
	       git->odb_foreach(use->odb, count_packed, use) == 0;
}

/* Adds a used blob to the new pack; anything else ends the iteration. */
static int write_again(const git_oid *id, void *data)
{
	struct pack_use *use = data;
	struct store *store = use->pruning->store;
	git_odb_object *object = NULL;
	size_t size;
	git_object_t type;
	if (!id_set_has(&use->pruning->reachable, id)) {
		return 0;
	}
	if (is_late(use->pruning) || store->git->odb_read_header(&size, &type, use->odb, id) < 0 ||
		type != GIT_OBJECT_BLOB || size > SHRINK_BLOB_MAX ||
		store->git->odb_read(&object, use->odb, id) < 0) {
		return -1;
	}
	struct span content = {store->git->odb_object_data(object), size};
	bool added = pack_add(store, content, id, NULL);
	use->used_bytes += size;
	store->git->odb_object_free(object);
	return added ? 0 : -1;
}

/*
 * Whether nothing needs the pack any more. If less than half of its objects are in use, they are
 * written to a new pack. A pack that cannot be read, or has other objects than blobs, stays.
 */
static bool pack_is_over(struct pack_use *use)
{
	struct store *store = use->pruning->store;
	if (use->used == 0 || use->used * 2 >= use->objects) {
		return use->used == 0;
	}
	bool written = pack_begin(store, NULL) &&
	               store->git->odb_foreach(use->odb, write_again, use) == 0 &&
	               pack_end(store, NULL);
	pack_drop(store);
	return written;
}

/*
 * Removes the pack unless another process has renewed its age meanwhile, because it has put one of
 * the objects in again. Such a process finds the pack, or writes the object anew, see
 * remove_if_old. Without its index a pack is useless: the index goes first and comes back last, so
 * that a kill leaves only rubbish.
 */
static bool remove_pack(struct pruning *pruning, const char *path, const char *index_path)
{
	struct temp temp = {.fd = -1};
	struct temp index = {.fd = -1};
	struct error err;
	struct stat status;
	int at = pruning->store->folder_fd;
	bool removed = false;
	if (!temp_create(pruning->store, &temp, &err) ||
		!temp_create(pruning->store, &index, &err)) {
		temp_discard(pruning->store, &temp);
		return false;
	}
	bool has_index = renameat(at, index_path, at, index.name) == 0;
	if (renameat(at, path, at, temp.name) == 0) {
		removed = is_old(pruning, temp.name, &status);
		if (!removed && renameat(at, temp.name, at, path) < 0) {
			fd_close(&temp.fd); // it cannot go back, so keep it in tmp
		}
	}
	if (!removed && has_index && renameat(at, index.name, at, index_path) < 0) {
		fd_close(&index.fd);
	}
	temp_discard(pruning->store, &index);
	temp_discard(pruning->store, &temp);
	return removed;
}

static void prune_pack(struct pruning *pruning, const char *folder, const char *name)
{
	char path[PATH_MAX], index_path[PATH_MAX + 8];
	struct stat status;
	struct pack_use use = {.pruning = pruning};
	int length = (int)(strlen(name) - strlen(".pack"));
	int at = pruning->store->folder_fd;
	text_whole(path, sizeof(path), "%s/%s", folder, name);
	text_whole(index_path, sizeof(index_path), "%s/%.*s.keep", folder, length, name);
	if (faccessat(at, index_path, F_OK, 0) == 0 || !is_old(pruning, path, &status)) {
		return;
	}
	text_whole(index_path, sizeof(index_path), "%s/%.*s.idx", folder, length, name);
	bool has_index = faccessat(at, index_path, F_OK, 0) == 0;
	bool is_over = !has_index || (open_use(&use, pruning, index_path) && pack_is_over(&use));
	pruning->store->git->odb_free(use.odb);
	if (is_over && remove_pack(pruning, path, index_path)) {
		uint64_t bytes = (uint64_t)status.st_blocks * 512;
		pruning->pruned.packs++;
		pruning->pruned.bytes += bytes > use.used_bytes ? bytes - use.used_bytes : 0;
	}
}

/* ---- the whole ---- */

static void prune_all(struct pruning *pruning)
{
	each_name(pruning, "delta", prune_folder, ""); // before the parts that the deltas need
	each_name(pruning, "big", prune_folder, ""); // the largest files first: the time is limited
	each_name(pruning, "objects/pack", prune_pack, ".pack");
	each_name(pruning, "objects", prune_folder, "");
}

bool store_prune(struct store *store, long long grace_seconds, long long time_max_ms,
	struct store_pruned *out_pruned, struct error *err)
{
	struct pruning pruning = {.store = store,
		.cutoff = time(NULL) - grace_seconds,
		.deadline_ms = time_max_ms > 0 ? clock_now_ms() + time_max_ms : 0};
	int lock ATTR_CLEANUP(fd_cleanup) = lock_file_open(store->folder_fd, "prune.lock");
	if (lock < 0) {
		return error_set_errno(err, errno, "store %s: prune.lock", store->path);
	}
	bool good = true;
	/* If another process is pruning, that is enough. */
	if (lock_file_try(lock, LOCK_ALONE) == LOCK_TAKEN) {
		good = store_mark(store, &pruning.reachable, pruning.deadline_ms, err);
		if (good) {
			prune_all(&pruning);
		}
	}
	id_set_finish(&pruning.reachable);
	if (good) {
		*out_pruned = pruning.pruned;
	}
	return good;
}
