/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/id.h"
#include "sync/store_impl.h"

/*
 * A ref is a file of one line. Like all files here it is first written under another name, and then
 * appears as a whole. libgit2 would make a NAME.lock, which a killed broker leaves behind and which
 * blocks all later writers.
 */
static bool ref_path(
	const struct store *store, const char *name, char path[PATH_MAX], struct error *err)
{
	int valid = 0;
	int length = snprintf(path, PATH_MAX, "refs/acp-broker/%s", name);
	if (length >= PATH_MAX || store->git->reference_name_is_valid(&valid, path) < 0 || !valid) {
		return error_set(err, ERROR_CONFIG, "\"%s\" is not a name for a snapshot", name);
	}
	return true;
}

bool store_sync_objects(struct store *store, struct error *err)
{
	return (!point("ref.syncing") && syncfs(store->folder_fd) == 0) ||
	       error_set_errno(err, errno, "store %s: syncing", store->path);
}

static bool write_ref(
	struct store *store, const char *path, const git_oid *commit, struct error *err)
{
	char line[GIT_OID_HEXSZ + 2];
	char hex[ID_TEXT_SIZE];
	text_whole(line, sizeof(line), "%s\n", id_text(hex, commit));
	struct temp temp = {.fd = -1};
	bool written = temp_create(store, &temp, err) &&
	               fd_write_all(temp.fd, (struct span){line, GIT_OID_HEXSZ + 1}, err) &&
	               temp_publish(store, &temp, path, err);
	temp_discard(store, &temp);
	return written;
}

enum { MESSAGE_MAX = 64 << 10 };

static bool write_commit(struct store *store, const git_oid *tree, const git_oid *parent,
	const char *message, git_oid *out_commit, struct error *err)
{
	char hex[GIT_OID_HEXSZ + 1];
	static const char who[] = "acp-broker <acp-broker@localhost>";
	long long now = (long long)time(NULL);
	struct buf text;
	buf_init(&text, MESSAGE_MAX);
	store->git->oid_tostr(hex, sizeof(hex), tree);
	bool written = buf_append_format(&text, err,
		"tree %s\nauthor %s %lld +0000\ncommitter %s %lld +0000\n\n%s\n", hex, who, now,
		who, now, message);
	if (written && parent) {
		store->git->oid_tostr(hex, sizeof(hex), parent);
		written = buf_append_format(&text, err, "\nParent: %s\n", hex);
	}
	written = written && object_put(store, GIT_OBJECT_COMMIT, buf_span(&text), out_commit, err);
	buf_finish(&text);
	return written;
}

/* NOLINTNEXTLINE(readability-function-size): seven parameters */
bool store_keep(struct store *store, const char *name, const git_oid *tree, const git_oid *parent,
	const char *message, git_oid *out_commit, struct error *err)
{
	char path[PATH_MAX];
	git_oid commit;
	if (!ref_path(store, name, path, err) ||
		!write_commit(store, tree, parent, message, &commit, err) ||
		!store_sync_objects(store, err) || !write_ref(store, path, &commit, err)) {
		return false;
	}
	point("ref.written");
	*out_commit = commit;
	return true;
}

bool store_keep_also(struct store *store, const char *name, const char *known, struct error *err)
{
	char path[PATH_MAX];
	char known_path[PATH_MAX];
	git_oid commit;
	git_oid now;
	struct error missing;
	if (!ref_path(store, name, path, err) || !ref_path(store, known, known_path, err) ||
		!ref_read(store, known_path, &commit, err)) {
		return false;
	}
	bool is_kept = ref_read(store, path, &now, &missing) && id_equal(&now, &commit);
	return is_kept || write_ref(store, path, &commit, err);
}

bool store_keep_commit(
	struct store *store, const char *name, const git_oid *commit, struct error *err)
{
	char path[PATH_MAX];
	return ref_path(store, name, path, err) && write_ref(store, path, commit, err);
}

/* ---- finding ---- */

bool ref_read(struct store *store, const char *path, git_oid *out_commit, struct error *err)
{
	char line[GIT_OID_HEXSZ + 1] = "";
	int fd ATTR_CLEANUP(fd_cleanup) = openat(store->folder_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		bool is_missing = errno == ENOENT || errno == ENOTDIR;
		return is_missing ? error_set(err, ERROR_NOT_FOUND, "store %s has no %s",
					    store->path, path)
		                  : error_set_errno(err, errno, "store %s: %s", store->path, path);
	}
	ssize_t count = read(fd, line, GIT_OID_HEXSZ);
	if (count != GIT_OID_HEXSZ || store->git->oid_fromstr(out_commit, line) < 0) {
		return error_set(err, ERROR_SYSTEM, "store %s: %s holds no id", store->path, path);
	}
	return true;
}

bool store_find(struct store *store, const char *name, git_oid *out_tree, struct error *err)
{
	char path[PATH_MAX];
	git_oid id;
	git_commit *commit = NULL;
	if (!ref_path(store, name, path, err) || !ref_read(store, path, &id, err)) {
		return false;
	}
	if (store->git->commit_lookup(&commit, store->repository, &id) < 0) {
		return error_set_git(store->git, err, "store %s: %s", store->path, path);
	}
	*out_tree = *store->git->commit_tree_id(commit);
	store->git->commit_free(commit);
	return true;
}

bool store_forget(struct store *store, const char *name, struct error *err)
{
	char path[PATH_MAX];
	if (!ref_path(store, name, path, err)) {
		return false;
	}
	if (unlinkat(store->folder_fd, path, 0) < 0) {
		int errnum = errno;
		return errnum == ENOENT ? error_set(err, ERROR_NOT_FOUND, "store %s has no %s",
						  store->path, path)
		                        : error_set_errno(err, errnum, "store %s: removing %s",
						  store->path, path);
	}
	return true;
}
