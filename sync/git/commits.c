/* SPDX-License-Identifier: MIT */
#include "sync/git/commits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "sync/git/shallow.h"
#include "sync/id.h"

enum { SHALLOW_MAX = 1 << 20, WALK_MAX = 4096 };

/* ---- the list of shallow commits ---- */

static bool read_shallow(struct store *store, struct buf *out)
{
	ATTR_CLEANUP(fd_cleanup)
	int fd = openat(store->folder_fd, "shallow", O_RDONLY | O_CLOEXEC);
	ssize_t count = fd >= 0 ? 1 : 0;
	while (count > 0) {
		char *at = buf_reserve(out, 4096, NULL);
		count = at ? read(fd, at, 4096) : -1;
		if (count > 0) {
			buf_commit(out, (size_t)count);
		}
	}
	return count == 0;
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

bool shallow_has(struct store *store, const git_oid *id)
{
	char hex[GIT_OID_HEXSZ + 1];
	struct buf list;
	buf_init(&list, SHALLOW_MAX);
	store->git->oid_tostr(hex, sizeof(hex), id);
	bool has = read_shallow(store, &list) && has_id(&list, hex);
	buf_finish(&list);
	return has;
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
	bool added = read_shallow(store, &list) ||
	             error_set(err, ERROR_LIMIT, "%s/shallow: too long", store->path);
	if (added && !has_id(&list, hex)) {
		added = buf_append_format(&list, err, "%s\n", hex) &&
		        write_shallow(store, &list, err);
	}
	buf_finish(&list);
	return added;
}

/* ---- listing ---- */

struct walk {
	struct store *store;
	git_oid ids[WALK_MAX]; // to be visited from `at` on; each once
	size_t at, count, max;
	struct agent_commit told;
	bool (*visit)(void *data, const struct agent_commit *commit);
	void *data;
	bool is_over;
};

static void add(struct walk *walk, const git_oid *id)
{
	for (size_t i = 0; i < walk->count; i++) {
		if (id_equal(&walk->ids[i], id)) {
			return;
		}
	}
	if (walk->count < WALK_MAX) {
		walk->ids[walk->count++] = *id;
	}
}

static void tell(struct walk *walk, git_commit *commit)
{
	const struct git *git = walk->store->git;
	const git_signature *author = git->commit_author(commit);
	const char *subject = git->commit_summary(commit);
	walk->told.id = *git->commit_id(commit);
	walk->told.subject = subject ? subject : "";
	walk->told.author = author ? author->name : "";
	walk->told.time = git->commit_time(commit);
	walk->is_over = walk->max-- == 0 || !walk->visit(walk->data, &walk->told);
}

static void walk_branch(struct walk *walk)
{
	const struct git *git = walk->store->git;
	while (!walk->is_over && walk->at < walk->count) {
		git_commit *commit = NULL;
		git_oid id = walk->ids[walk->at++];
		bool is_known = shallow_has(walk->store, &id) ||
		                git->commit_lookup(&commit, walk->store->repository, &id) < 0;
		if (is_known) {
			continue; // what the agent built upon
		}
		tell(walk, commit);
		for (unsigned i = 0; i < git->commit_parentcount(commit); i++) {
			add(walk, git->commit_parent_id(commit, i));
		}
		git->commit_free(commit);
	}
}

bool agent_commits_list(struct store *store, size_t max,
	bool (*visit)(void *data, const struct agent_commit *commit), void *data, struct error *err)
{
	static const char refs[] = "refs/acp-broker/agent/";
	const struct git *git = store->git;
	git_reference_iterator *iterator = NULL;
	const char *name;
	if (git->reference_iterator_glob_new(
		    &iterator, store->repository, "refs/acp-broker/agent/*") < 0) {
		return error_set_git(git, err, "reading the store %s", store->path);
	}
	struct walk *walk = mem_alloc_zero(sizeof(*walk));
	*walk = (struct walk){.store = store, .max = max, .visit = visit, .data = data};
	while (!walk->is_over && git->reference_next_name(&name, iterator) == 0) {
		git_oid id;
		walk->told.branch = name + sizeof(refs) - 1;
		if (git->reference_name_to_id(&id, store->repository, name) == 0) {
			add(walk, &id);
			walk_branch(walk);
		}
	}
	free(walk);
	git->reference_iterator_free(iterator);
	return true;
}
