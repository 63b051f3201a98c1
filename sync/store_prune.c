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

struct pack_use {
	struct pruning *pruning;
	bool is_used;
};

static int on_packed(const git_oid *id, void *data)
{
	struct pack_use *use = data;
	use->is_used = id_set_has(&use->pruning->reachable, id);
	return use->is_used ? 1 : 0; // 1 ends the iteration
}

/* A pack that cannot be read counts as used. */
static bool pack_is_used(struct pruning *pruning, const char *index_path)
{
	const struct git *git = pruning->store->git;
	struct pack_use use = {.pruning = pruning};
	git_odb *odb = NULL;
	git_odb_backend *pack = NULL;
	char path[PATH_MAX];
	text_whole(path, sizeof(path), "%s/%s", pruning->store->path, index_path);
	int result = git->odb_new(&odb);
	if (result == 0 && (result = git->odb_backend_one_pack(&pack, path)) == 0) {
		result = git->odb_add_backend(odb, pack, 1);
	}
	if (result == 0) {
		result = git->odb_foreach(odb, on_packed, &use);
	}
	git->odb_free(odb);
	return result != 0 || use.is_used;
}

/*
 * Without its index a pack is useless: the index is removed first, so that a kill leaves only
 * rubbish.
 */
static void prune_pack(struct pruning *pruning, const char *folder, const char *name)
{
	char base[PATH_MAX], path[PATH_MAX + 8];
	struct stat status;
	text_whole(
		base, sizeof(base), "%s/%.*s", folder, (int)(strlen(name) - strlen(".pack")), name);
	text_whole(path, sizeof(path), "%s.keep", base);
	if (faccessat(pruning->store->folder_fd, path, F_OK, 0) == 0) {
		return;
	}
	text_whole(path, sizeof(path), "%s.pack", base);
	if (!is_old(pruning, path, &status)) {
		return;
	}
	text_whole(path, sizeof(path), "%s.idx", base);
	bool has_index = faccessat(pruning->store->folder_fd, path, F_OK, 0) == 0;
	if (has_index && pack_is_used(pruning, path)) {
		return;
	}
	unlinkat(pruning->store->folder_fd, path, 0);
	text_whole(path, sizeof(path), "%s.pack", base);
	unlinkat(pruning->store->folder_fd, path, 0);
	pruning->pruned.packs++;
	pruning->pruned.bytes += (uint64_t)status.st_blocks * 512;
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
