/* SPDX-License-Identifier: MIT */
#include "sync/git/commits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hex.h"
#include "base/words.h"
#include "sync/git/shallow.h"
#include "sync/id.h"
#include "sync/id_set.h"

enum { SHALLOW_MAX = 1 << 20, SHALLOW_READ = 4096 };

/* ---- the list of shallow commits ---- */

static bool read_shallow(struct store *store, struct buf *out, struct error *err)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(store->folder_fd, "shallow", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? 1 : 0;
	while (count > 0) {
		char *at = buf_reserve(out, SHALLOW_READ, NULL);
		count = at ? read(fd, at, SHALLOW_READ) : -1;
		if (count > 0) {
			buf_commit(out, (size_t)count);
		}
	}
	return count == 0 ||
	       error_set(err, ERROR_LIMIT, "%s/shallow: too long, or cannot be read", store->path);
}

static bool has_id(const struct buf *list, const char *hex)
{
	struct span text = buf_span(list);
	for (size_t at = 0; at + GIT_OID_HEXSZ < text.len; at += GIT_OID_HEXSZ + 1) {
		if (memcmp(text.data + at, hex, GIT_OID_HEXSZ) == 0) {
			return true;
		}
	}
	return false;
}

static bool write_shallow(struct store *store, const struct buf *list, struct error *err)
{
	static const char fresh[] = "shallow.new";
	int fd = openat(store->folder_fd, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool written = fd >= 0 && fd_write_all(fd, buf_span(list), NULL) && fsync(fd) == 0 &&
	               renameat(store->folder_fd, fresh, store->folder_fd, "shallow") == 0;
	int errnum = errno;
	fd_close(&fd);
	return written || error_set_errno(err, errnum, "writing %s/shallow", store->path);
}

bool shallow_add(struct store *store, const git_oid *id, struct error *err)
{
	char hex[GIT_OID_HEXSZ + 1];
	struct buf list;
	buf_init(&list, SHALLOW_MAX);
	store->git->oid_tostr(hex, sizeof(hex), id);
	bool added = read_shallow(store, &list, err);
	if (added && !has_id(&list, hex)) {
		added = buf_append_format(&list, err, "%s\n", hex) &&
		        write_shallow(store, &list, err);
	}
	buf_finish(&list);
	return added;
}

/* ---- the paths of repositories ---- */

bool agent_commits_path(const char *path, char out_text[AGENT_COMMITS_PATH_MAX + 1])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-";
	static const char digits[] = "0123456789ABCDEF";
	size_t length = 0;
	for (const char *at = path; *at; at++) {
		bool is_plain = strchr(plain, *at) != NULL;
		if (length + (is_plain ? 1 : 3) > AGENT_COMMITS_PATH_MAX) {
			out_text[0] = '\0';
			return false;
		}
		out_text[length++] = is_plain ? *at : '%';
		if (!is_plain) {
			out_text[length++] = digits[(unsigned char)*at >> 4];
			out_text[length++] = digits[(unsigned char)*at & 15];
		}
	}
	out_text[length] = '\0';
	return length > 0;
}

/* The caller frees it. A text that agent_commits_path would not write is kept as it is. */
static char *decode_path(struct span text)
{
	char *path = mem_alloc(text.len + 1);
	size_t length = 0;
	for (size_t i = 0; i < text.len; i++) {
		int high = i + 2 < text.len ? hex_digit(text.data[i + 1]) : -1;
		int low = i + 2 < text.len ? hex_digit(text.data[i + 2]) : -1;
		bool is_coded = text.data[i] == '%' && high >= 0 && low >= 0 && high + low > 0;
		path[length++] = (char)(is_coded ? high << 4 | low : text.data[i]);
		i += is_coded ? 2 : 0;
	}
	path[length] = '\0';
	return path;
}

/* ---- listing ---- */

struct walk {
	struct store *store;
	const struct agent_commits_visitor *visitor;
	struct buf shallow; // where the agents' history begins
	struct id_set seen; // in the current branch
	git_oid *ids;       // to visit, from `at` on; each once
	size_t at, count, max;
	bool is_over;
};

static void add(struct walk *walk, const git_oid *id)
{
	if (walk->count < walk->max && id_set_add(&walk->seen, id)) {
		walk->ids[walk->count++] = *id;
	}
}

static void tell(struct walk *walk, git_commit *commit)
{
	const struct git *git = walk->store->git;
	const git_signature *author = git->commit_author(commit);
	const char *subject = git->commit_summary(commit);
	struct agent_commit told = {
		.id = *git->commit_id(commit),
		.subject = subject ? subject : "",
		.author = author ? author->name : "",
		.time = git->commit_time(commit),
	};
	walk->is_over = !walk->visitor->on_commit(walk->visitor->data, &told);
}

static void visit_commit(struct walk *walk, const git_oid *id)
{
	const struct git *git = walk->store->git;
	char hex[GIT_OID_HEXSZ + 1];
	git_commit *commit = NULL;
	git->oid_tostr(hex, sizeof(hex), id);
	if (has_id(&walk->shallow, hex) ||
		git->commit_lookup(&commit, walk->store->repository, id) < 0) {
		return; // the commits below are not the agent's
	}
	tell(walk, commit);
	for (unsigned i = 0; i < git->commit_parentcount(commit); i++) {
		add(walk, git->commit_parent_id(commit, i));
	}
	git->commit_free(commit);
}

static void visit_branch(struct walk *walk, const char *ref, const git_oid *tip)
{
	size_t below = sizeof(AGENT_COMMITS_REFS_IN) - 1;
	bool is_below = strncmp(ref, AGENT_COMMITS_REFS_IN, below) == 0;
	const char *name = ref + (is_below ? below : sizeof(AGENT_COMMITS_REFS) - 1);
	size_t length = is_below ? strcspn(name, "/") : 0;
	char *path = decode_path((struct span){name, length});
	struct agent_branch branch = {.ref = ref,
		.repository = path,
		.name = name + length + (is_below && name[length] == '/'),
		.tip = *tip};
	walk->is_over = !walk->visitor->on_branch(walk->visitor->data, &branch);
	walk->at = 0;
	walk->count = 0;
	add(walk, tip);
	while (!walk->is_over && walk->at < walk->count) {
		visit_commit(walk, &walk->ids[walk->at++]);
	}
	id_set_finish(&walk->seen);
	walk->seen = (struct id_set){0};
	free(path);
}

bool agent_commits_refs(struct store *store, char ***out_names, struct error *err)
{
	static const char *const globs[] = {AGENT_COMMITS_REFS "*", AGENT_COMMITS_REFS_IN "*"};
	const struct git *git = store->git;
	const char *name;
	*out_names = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(globs); i++) {
		git_reference_iterator *iterator = NULL;
		size_t before = words_count(*out_names);
		if (git->reference_iterator_glob_new(&iterator, store->repository, globs[i]) < 0) {
			words_free(*out_names);
			*out_names = NULL;
			return error_set_git(git, err, "reading the store %s", store->path);
		}
		while (git->reference_next_name(&name, iterator) == 0) {
			words_append(out_names, name);
		}
		git->reference_iterator_free(iterator);
		if (*out_names) {
			qsort(*out_names + before, words_count(*out_names) - before,
				sizeof(**out_names), words_compare);
		}
	}
	return true;
}

bool agent_commits_list(struct store *store, size_t max,
	const struct agent_commits_visitor *visitor, struct error *err)
{
	char **names;
	struct walk walk = {.store = store, .visitor = visitor, .max = max};
	if (!agent_commits_refs(store, &names, err)) {
		return false;
	}
	buf_init(&walk.shallow, SHALLOW_MAX);
	walk.ids = mem_alloc(max * sizeof(*walk.ids));
	bool ok = read_shallow(store, &walk.shallow, err);
	for (size_t i = 0; ok && names && names[i] && !walk.is_over; i++) {
		git_oid tip;
		if (store->git->reference_name_to_id(&tip, store->repository, names[i]) == 0) {
			visit_branch(&walk, names[i], &tip);
		}
	}
	free(walk.ids);
	buf_finish(&walk.shallow);
	words_free(names);
	return ok;
}

/* ---- forgetting ---- */

/*
 * Drops commits from the list if store_prune has removed them from the store. (It runs without the
 * store's lock, after the last sync.) A list of the maximum length must not fail a sync.
 */
static bool prune_shallow(struct store *store, struct error *err)
{
	struct buf list, rest;
	buf_init(&list, SHALLOW_MAX + SHALLOW_READ);
	buf_init(&rest, SHALLOW_MAX);
	bool read = read_shallow(store, &list, err);
	struct span text = buf_span(&list);
	for (size_t at = 0; read && at + GIT_OID_HEXSZ < text.len; at += GIT_OID_HEXSZ + 1) {
		struct span line = {text.data + at, GIT_OID_HEXSZ + 1};
		git_oid id;
		read = store->git->oid_fromstr(&id, line.data) < 0 ||
		       !store->git->odb_exists(store->odb, &id) || buf_append(&rest, line, err);
	}
	bool pruned = read && (rest.len == list.len || write_shallow(store, &rest, err));
	buf_finish(&list);
	buf_finish(&rest);
	return pruned;
}

/* Also removes the folders that become empty: they would be in the way of a branch of that name. */
static bool forget(struct store *store, const char *ref, struct error *err)
{
	char *path = mem_strdup(ref);
	bool forgotten = unlinkat(store->folder_fd, path, 0) == 0 ||
	                 error_set_errno(err, errno, "store %s: removing %s", store->path, ref);
	while (forgotten && strlen(path) > sizeof(AGENT_COMMITS_REFS)) {
		*strrchr(path, '/') = '\0';
		if (unlinkat(store->folder_fd, path, AT_REMOVEDIR) < 0) {
			break;
		}
	}
	free(path);
	return forgotten;
}

bool agent_commits_forget(struct store *store, long long before, struct error *err)
{
	char **names = NULL;
	bool ok = before == 0 || agent_commits_refs(store, &names, err);
	for (size_t i = 0; ok && names && names[i]; i++) {
		struct stat status;
		if (fstatat(store->folder_fd, names[i], &status, AT_SYMLINK_NOFOLLOW) == 0 &&
			status.st_mtime < before) {
			ok = forget(store, names[i], err);
		}
	}
	words_free(names);
	return ok && prune_shallow(store, err);
}
