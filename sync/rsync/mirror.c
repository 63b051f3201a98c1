/* SPDX-License-Identifier: MIT */
#include "sync/rsync/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.h"
#include "base/fd.h"
#include "base/point.h"
#include "base/real_path.h"
#include "base/text.h"
#include "sync/apply.h"
#include "sync/git/trees.h"
#include "sync/rsync/mirror_walk.h"

void mirror_init(struct mirror *mirror, const char *store_path, const char *name)
{
	char *folder = path_join(store_path, "rsync");
	mirror->folder = path_join(folder, name);
	mirror->path = path_join(mirror->folder, "mirror");
	free(folder);
	mirror->fd = -1;
}

void mirror_finish(struct mirror *mirror)
{
	fd_close(&mirror->fd);
	free(mirror->folder);
	free(mirror->path);
}

/* ---- the folder ---- */

/*
 * If another program was installed in our place meanwhile (proc(5): "(deleted)"), returns that one.
 */
static bool find_self(char self[PATH_MAX], struct error *err)
{
	static const char deleted[] = " (deleted)";
	size_t end = sizeof(deleted) - 1;
	ssize_t length = readlink("/proc/self/exe", self, PATH_MAX - 1);
	if (length < 0) {
		return error_set_errno(err, errno, "finding this program");
	}
	size_t len = (size_t)length;
	self[len] = '\0';
	if (access(self, X_OK) != 0 && len > end && strcmp(self + len - end, deleted) == 0) {
		self[len - end] = '\0';
	}
	return true;
}

static bool link_shell(struct mirror *mirror, const char *shell, struct error *err)
{
	char self[PATH_MAX];
	if (!shell) {
		if (!find_self(self, err)) {
			return false;
		}
		shell = self;
	}
	unlinkat(mirror->fd, "shell", 0);
	return symlinkat(shell, mirror->fd, "shell") == 0 ||
	       error_set_errno(err, errno, "making a link in %s", mirror->folder);
}

bool mirror_open(struct mirror *mirror, const char *shell, bool *out_is_new, struct error *err)
{
	char parent[PATH_MAX];
	if (mirror->fd < 0) {
		text_whole(parent, sizeof(parent), "%.*s",
			(int)(strrchr(mirror->folder, '/') - mirror->folder), mirror->folder);
		mkdir(parent, 0700);
		mkdir(mirror->folder, 0700);
		mirror->fd = open(mirror->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (mirror->fd < 0 || fchmod(mirror->fd, 0700) < 0) {
			return error_set_errno(err, errno, "opening %s", mirror->folder);
		}
	}
	bool is_new = mkdirat(mirror->fd, "mirror", 0700) == 0;
	if (!is_new && errno != EEXIST) {
		return error_set_errno(err, errno, "making %s", mirror->path);
	}
	*out_is_new = is_new;
	return link_shell(mirror, shell, err);
}

bool mirror_empty(struct mirror *mirror, const char *name, struct error *err)
{
	mirror_remove(mirror->fd, name);
	return mkdirat(mirror->fd, name, 0700) == 0 ||
	       error_set_errno(err, errno, "making %s/%s", mirror->folder, name);
}

char *mirror_rescue(struct mirror *mirror, const char *name, struct error *err)
{
	char kept[64];
	mirror_stamp(kept, sizeof(kept), "rescued-");
	if (renameat(mirror->fd, name, mirror->fd, kept) < 0) {
		error_set_errno(err, errno, "renaming %s/%s to %s", mirror->folder, name, kept);
		return NULL;
	}
	return path_join(mirror->folder, kept);
}

/* ---- its state ---- */

enum mirror_state mirror_state(const struct mirror *mirror, struct store *store, git_oid *out_tree)
{
	char text[64] = "";
	int fd ATTR_CLEANUP(fd_cleanup) =
		openat(mirror->fd, "state", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t count = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[count > 0 ? count : 0] = '\0';
	if (strncmp(text, "busy", 4) == 0) {
		return MIRROR_BUSY;
	}
	text[strcspn(text, "\n")] = '\0';
	bool is_known = strncmp(text, "is ", 3) == 0 && strlen(text) == 3 + GIT_OID_HEXSZ &&
	                store->git->oid_fromstr(out_tree, text + 3) == 0;
	return is_known ? MIRROR_IS : MIRROR_UNKNOWN;
}

bool mirror_set_state(struct mirror *mirror, struct store *store, enum mirror_state state,
	const git_oid *tree, struct error *err)
{
	char text[64] = "busy\n", id[GIT_OID_HEXSZ + 1];
	if (state == MIRROR_UNKNOWN) {
		return unlinkat(mirror->fd, "state", 0) == 0 || errno == ENOENT ||
		       error_set_errno(err, errno, "removing %s/state", mirror->folder);
	}
	if (state == MIRROR_IS) {
		text_whole(
			text, sizeof(text), "is %s\n", store->git->oid_tostr(id, sizeof(id), tree));
	}
	int fd ATTR_CLEANUP(fd_cleanup) = openat(mirror->fd, "state.new",
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		return error_set_errno(err, errno, "writing %s/state", mirror->folder);
	}
	return fd_write_all(fd, span_of(text), err) &&
	       ((!point("mirror.marking") &&
			renameat(mirror->fd, "state.new", mirror->fd, "state") == 0) ||
		       error_set_errno(err, errno, "writing %s/state", mirror->folder));
}

/* ---- changing it ---- */

struct left {
	char path[256];
	const char *why;
};

static void on_left(void *data, const char *path, const char *why)
{
	struct left *left = data;
	if (!left->why) {
		text_format(left->path, sizeof(left->path), "%s", path);
		left->why = why;
	}
}

bool mirror_apply(struct mirror *mirror, struct store *store, const git_oid *from,
	const git_oid *to, struct error *err)
{
	struct left left = {.why = NULL};
	struct apply_result result;
	struct apply_request request = {.root = mirror->path,
		.from = *from,
		.to = *to,
		.is_cache = true,
		.on_left = on_left,
		.data = &left};
	if (!apply_run(store, &request, &result, err)) {
		return error_prefix(err, "%s", mirror->path);
	}
	/* Syncs everything to the disk before the state says that it matches the store. */
	if (syncfs(mirror->fd) < 0) {
		return error_set_errno(err, errno, "syncing %s", mirror->path);
	}
	return result.left == 0 || error_set_reason(err, ERROR_UNAVAILABLE, "RUNTIME_CHANGED",
					   "the mirror %s is not what was collected: %s: %s",
					   mirror->path, left.path, left.why);
}

static void copy_link(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(from, name, target, sizeof(target) - 1);
	if (length >= 0) {
		target[length] = '\0';
		(void)!symlinkat(target, to, name);
	}
}

/* If a file cannot be linked, it only needs a second look later. */
static bool save_one(void *data, const struct tree_change *change, struct error *err)
{
	const struct mirror *mirror = data;
	char folder[PATH_MAX];
	const char *slash = strrchr(change->path, '/');
	const char *name = slash ? slash + 1 : change->path;
	/*
	 * Skips changes of only the mode: they would change the link's mode too, and replace
	 * nothing there.
	 */
	if (change->from.mode == ENTRY_NONE ||
		store_entry_same_content(&change->from, &change->to)) {
		return true;
	}
	text_whole(folder, sizeof(folder), "%.*s", slash ? (int)(slash - change->path) : 0,
		change->path);
	int from_root ATTR_CLEANUP(fd_cleanup) = openat(mirror->fd, "mirror", O_PATH | O_CLOEXEC);
	int to_root ATTR_CLEANUP(fd_cleanup) = openat(mirror->fd, "before", O_PATH | O_CLOEXEC);
	int from ATTR_CLEANUP(fd_cleanup) = beneath_open_folder(from_root, folder, false);
	int to ATTR_CLEANUP(fd_cleanup) = beneath_open_folder(to_root, folder, true);
	if (from >= 0 && to >= 0 && linkat(from, name, to, name, 0) < 0) {
		copy_link(from, to, name); // not every file system can hard-link symbolic links
	}
	return true;
}

bool mirror_save(struct mirror *mirror, struct store *store, const git_oid *from, const git_oid *to,
	struct error *err)
{
	return mirror_empty(mirror, "before", err) &&
	       trees_compare(store, from, to, save_one, mirror, err);
}
