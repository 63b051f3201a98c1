/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/git/commits.h"
#include "sync/git/commits_note.h"
#include "sync/git/git.h"
#include "sync/git/shallow.h"
#include "sync/git/tree_walk.h"
#include "sync/store_impl.h"

enum { BRANCHES_MAX = 4096, KEPT_MAX = 1 << 16 };

/* The commits that have arrived. */
struct branch {
	git_oid id;
	char *name; // owned
};
struct arrival {
	struct branch branches[BRANCHES_MAX];
	size_t branch_count;
	size_t dropped;                         // branches beyond the maximum
	git_oid commits[2 * AGENT_COMMITS_MAX]; // including the bases
	size_t commit_count;
	struct id_set bases; // parents of the agent's commits
	struct id_set made;  // all others
	struct commits_note note;
	bool is_on_disk; // everything received is on the disk
};

/* The arrival of the current operation. There is one at a time, on one worker thread. */
static struct arrival *arrival_of(struct git_transport *git)
{
	if (!git->arrival) {
		git->arrival = mem_alloc_zero(sizeof(*git->arrival));
	}
	return git->arrival;
}

void git_drop_commits(struct git_transport *git)
{
	for (size_t i = 0; git->arrival && i < git->arrival->branch_count; i++) {
		free(git->arrival->branches[i].name);
	}
	if (git->arrival) {
		id_set_finish(&git->arrival->bases);
		id_set_finish(&git->arrival->made);
	}
	free(git->arrival);
	git->arrival = NULL;
}

/* ---- receiving ---- */

bool git_write_known_commits(struct git_transport *git, int fd, struct error *err)
{
	const struct git *lib = git->store.git;
	char **names;
	if (!agent_commits_refs(&git->store, &names, err)) {
		return false;
	}
	bool written = true;
	for (size_t i = 0; written && names && names[i]; i++) {
		char word[GIT_OID_HEXSZ + 1];
		git_oid id;
		if (lib->reference_name_to_id(&id, git->store.repository, names[i]) == 0) {
			lib->oid_tostr(word, sizeof(word), &id);
			written = fd_write_all(fd, (struct span){word, sizeof(word)}, err);
		}
	}
	words_free(names);
	return written;
}

static bool check_object(struct git_transport *git, struct line_object *object, struct error *err)
{
	struct arrival *arrival = arrival_of(git);
	if (object->type == GIT_OBJECT_TREE) {
		struct error why;
		object->is_unwanted = !trees_check_bytes(object->content, true, &why);
		return true; // we keep no branch that refers to it
	}
	if (object->type != GIT_OBJECT_COMMIT) {
		return true;
	}
	if (arrival->commit_count == ARRAY_LENGTH(arrival->commits)) {
		return error_set(err, ERROR_PROTOCOL, "the sandbox sent too many commits");
	}
	arrival->commits[arrival->commit_count++] = object->id;
	return true;
}

/* Drops the commits of this repository in this collect; the next repository's still count. */
static bool take_untold(struct git_transport *git, const struct line *line, struct error *err)
{
	char shown[TEXT_SHORT_SIZE];
	struct error untold;
	char *why = path_quote(span_of(line->text));
	error_set(&untold, ERROR_UNAVAILABLE, "git there says: %s", text_short(shown, why));
	free(why);
	return git_refuse_commits(git, &untold, err);
}

/* Repositories come in our order, each once. The previous one is complete now. */
static bool take_within(struct git_transport *git, const char *path, struct error *err)
{
	if (!git_keep_commits(git, err)) {
		return false;
	}
	while (++git->told < git->history_count) {
		git->history = git->histories[git->told];
		if (strcmp(git->history->path, path) == 0) {
			git->received_count = 0;
			return true;
		}
	}
	return error_set(err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
}

bool git_take_commits(
	struct git_transport *git, struct lines *lines, const struct line *line, struct error *err)
{
	if (line->kind == LINE_UNTOLD) {
		return take_untold(git, line, err);
	}
	if (line->kind == LINE_WITHIN) {
		return take_within(git, line->text, err);
	}
	if (line->kind == LINE_REPOSITORY && git->told > 0) {
		git->history->is_lost = strcmp(line->text, "none") == 0;
		return true;
	}
	struct arrival *arrival = arrival_of(git);
	if (line->kind == LINE_COMMITS) {
		return true;
	}
	if (line->kind == LINE_OBJECTS) {
		lines->has_streams = true;
		return git_receive_objects(git, lines, line->number, check_object, err);
	}
	if (line->kind == LINE_BASE) {
		if (arrival->bases.count < ARRAY_LENGTH(arrival->commits)) {
			id_set_add(&arrival->bases, &line->id);
		}
		return true;
	}
	if (line->kind != LINE_REF) {
		return error_set(
			err, ERROR_PROTOCOL, "the sandbox sent something that was not requested");
	}
	if (arrival->branch_count == BRANCHES_MAX) {
		arrival->dropped++;
		return true;
	}
	arrival->branches[arrival->branch_count++] =
		(struct branch){line->id, mem_strdup(line->text)};
	return true;
}

/* ---- keeping ---- */

static bool check_commit(
	struct git_transport *git, const git_oid *id, git_oid *known, struct error *err)
{
	const struct git *lib = git->store.git;
	git_commit *commit = NULL;
	bool is_cut = false;
	if (lib->commit_lookup(&commit, git->store.repository, id) < 0) {
		return error_set_git(lib, err, "reading a commit");
	}
	git_oid tree = *lib->commit_tree_id(commit);
	bool checked = trees_check_commit(&git->store, known, &tree, err);
	for (unsigned i = 0; checked && i < lib->commit_parentcount(commit); i++) {
		is_cut = is_cut ||
		         !lib->odb_exists(git->store.odb, lib->commit_parent_id(commit, i));
	}
	lib->commit_free(commit);
	*known = tree;
	return checked && (!is_cut || shallow_add(&git->store, id, err));
}

static bool on_kept_branch(void *data, const struct agent_branch *branch)
{
	return true;
}

static bool on_kept_commit(void *data, const struct agent_commit *commit)
{
	id_set_add(data, &commit->id);
	return true;
}

/*
 * Marks where the agent's history begins. A base counts as the user's unless it was kept as the
 * agent's before, even if the store has everything below it.
 */
static bool mark_bases(struct git_transport *git, struct error *err)
{
	struct arrival *arrival = git->arrival;
	struct id_set kept = {0};
	struct agent_commits_visitor visitor = {on_kept_branch, on_kept_commit, &kept};
	bool ok = arrival->bases.count == 0 ||
	          agent_commits_list(&git->store, KEPT_MAX, &visitor, err);
	for (size_t i = 0; ok && i < arrival->commit_count; i++) {
		const git_oid *id = &arrival->commits[i];
		if (!id_set_has(&arrival->bases, id)) {
			id_set_add(&arrival->made, id);
		} else if (!id_set_has(&kept, id)) {
			ok = shallow_add(&git->store, id, err);
		}
	}
	id_set_finish(&kept);
	return ok;
}

struct ancestors {
	git_oid ids[2 * AGENT_COMMITS_MAX];
	size_t count;
	struct id_set seen;
};

static void add_parents(struct git_transport *git, struct ancestors *list, const git_oid *id)
{
	const struct git *lib = git->store.git;
	git_commit *commit = NULL;
	if (lib->commit_lookup(&commit, git->store.repository, id) < 0) {
		return; // the store's history begins here
	}
	for (unsigned i = 0; i < lib->commit_parentcount(commit); i++) {
		const git_oid *parent = lib->commit_parent_id(commit, i);
		if (list->count < ARRAY_LENGTH(list->ids) && id_set_add(&list->seen, parent)) {
			list->ids[list->count++] = *parent;
		}
	}
	lib->commit_free(commit);
}

/* libgit2 1.5 fails here, and leaks memory, if a parent is missing. */
static bool builds_upon(struct git_transport *git, const git_oid *id, const git_oid *old)
{
	struct ancestors *list = mem_alloc_zero(sizeof(*list));
	bool found = id_equal(id, old);
	add_parents(git, list, id);
	for (size_t i = 0; !found && i < list->count; i++) {
		found = id_equal(&list->ids[i], old);
		add_parents(git, list, &list->ids[i]);
	}
	id_set_finish(&list->seen);
	free(list);
	return found;
}

/* If a branch was rewritten, its old commits are kept under another name. */
static bool keep_as(struct git_transport *git, const char *name, const git_oid *id, bool *out_new,
	struct error *err)
{
	const struct git *lib = git->store.git;
	char path[PATH_MAX], other[PATH_MAX];
	git_oid old;
	text_whole(path, sizeof(path), "refs/acp-broker/%s", name);
	bool is_known = lib->reference_name_to_id(&old, git->store.repository, path) == 0;
	*out_new = !is_known || !id_equal(&old, id);
	if (!*out_new) {
		return true;
	}
	if (!git->arrival->is_on_disk && !store_sync_objects(&git->store, err)) {
		return false;
	}
	git->arrival->is_on_disk = true;
	if (is_known && !builds_upon(git, id, &old)) {
		char hex[GIT_OID_HEXSZ + 1];
		lib->oid_tostr(hex, sizeof(hex), &old);
		if (!text_whole(other, sizeof(other), "%s-before-%.12s", name, hex)) {
			return error_set(
				err, ERROR_LIMIT, "keeping %s: its name is too long", name);
		}
		if (!store_keep_commit(&git->store, other, &old, err)) {
			return false;
		}
	}
	return store_keep_commit(&git->store, name, id, err);
}

/*
 * The store keeps branches that the agent has removed: as long as "fix" exists, "fix/two" cannot.
 */
static bool keep_branch(struct git_transport *git, const struct branch *branch, struct error *err)
{
	char path[AGENT_COMMITS_PATH_MAX + 1];
	char folder[AGENT_COMMITS_PATH_MAX + 16] = "agent/", name[LINE_PATH_MAX + 300];
	struct error first;
	bool is_new = false;
	if (!git->store.git->odb_exists(git->store.odb, &branch->id)) {
		return error_set(err, ERROR_PROTOCOL, "its commit is missing");
	}
	if (*git->history->path) {
		agent_commits_path(git->history->path, path);
		text_whole(folder, sizeof(folder), "agent-in/%s/", path);
	}
	size_t begin = strlen(folder);
	int length = snprintf(name, sizeof(name), "%s%s", folder, branch->name);
	if (!keep_as(git, name, &branch->id, &is_new, &first)) {
		for (char *at = name + begin; *at; at++) {
			*at = *at == '/' ? '%' : *at;
		}
		snprintf(name + length, sizeof(name) - (size_t)length, "%%");
		if (!keep_as(git, name, &branch->id, &is_new, NULL)) {
			*err = first;
			return false;
		}
	}
	if (is_new) {
		commits_note_add(&git->arrival->note, &git->store, &git->arrival->made,
			&(struct agent_branch){.repository = git->history->path,
				.name = name + begin,
				.tip = branch->id});
	}
	return true;
}

/* " of PATH", for people. */
static const char *of_repository(const struct git_transport *git, char text[TEXT_SHORT_SIZE + 4])
{
	char shown[TEXT_SHORT_SIZE];
	char *path = path_quote(span_of(git->history->path));
	text[0] = '\0';
	if (*git->history->path) {
		text_format(text, TEXT_SHORT_SIZE + 4, " of %s", text_short(shown, path));
	}
	free(path);
	return text;
}

/*
 * From here on there are refs, so that the received commits stay. A branch that fails does not stop
 * the others.
 */
static void keep_branches(struct git_transport *git)
{
	struct arrival *arrival = git->arrival;
	for (size_t i = 0; i < arrival->branch_count; i++) {
		struct error why;
		if (!keep_branch(git, &arrival->branches[i], &why)) {
			char shown[104], reason[TEXT_SHORT_SIZE], of[TEXT_SHORT_SIZE + 4];
			char *name = path_quote(span_of(arrival->branches[i].name));
			text_format(shown, sizeof(shown), "%s", name);
			git_tell_user(git, "the agent's branch %s%s was not taken: %s", shown,
				of_repository(git, of), text_short(reason, why.text));
			free(name);
			git->collecting.result.commits_left = true;
		}
	}
	if (arrival->dropped > 0) {
		git->collecting.result.commits_left = true;
		git_tell_user(git, "%zu branches of the agent were not taken: there are too many",
			arrival->dropped);
	}
}

/*
 * For a part of a repository, only new objects come with the commits. Objects that are missing here
 * too come with the next collect.
 */
static bool fill_bases(struct git_transport *git, struct error *err)
{
	const struct git *lib = git->store.git;
	struct arrival *arrival = git->arrival;
	bool ok = true;
	for (size_t i = 0; ok && i < arrival->commit_count; i++) {
		git_commit *commit = NULL;
		if (!id_set_has(&arrival->bases, &arrival->commits[i])) {
			continue;
		}
		ok = lib->commit_lookup(&commit, git->store.repository, &arrival->commits[i]) ==
		             0 &&
		     git_fill_tree(git, lib->commit_tree_id(commit), err);
		lib->commit_free(commit);
	}
	return ok;
}

static bool check_all(struct git_transport *git, struct error *err)
{
	struct arrival *arrival = git->arrival;
	git_oid known = store_empty_tree;
	const struct history *history = git->history;
	bool has_all = !*history->room || !history->exists || git->wants_bases;
	if (!has_all && !fill_bases(git, err)) {
		return false;
	}
	for (size_t i = arrival->commit_count; i > 0; i--) {
		if (!check_commit(git, &arrival->commits[i - 1], &known, err)) {
			return false;
		}
	}
	return mark_bases(git, err);
}

bool git_refuse_commits(struct git_transport *git, const struct error *why, struct error *err)
{
	git_drop_commits(git);
	git_discard_received(git);
	git->collecting.result.commits_left = true;
	char shown[TEXT_SHORT_SIZE], of[TEXT_SHORT_SIZE + 4];
	git_tell_user(git, "the agent's commits%s were not taken: %s", of_repository(git, of),
		text_short(shown, why->text));
	return git_open_store(git, err);
}

bool git_keep_commits(struct git_transport *git, struct error *err)
{
	struct error why;
	if (!git->arrival) {
		return true;
	}
	if (!check_all(git, &why)) {
		git->wants_bases = git->wants_bases || *git->history->room;
		return git_refuse_commits(git, &why, err);
	}
	keep_branches(git);
	commits_note_end(&git->arrival->note, *git->history->path);
	git_tell_user(git, "%s", git->arrival->note.text);
	git_drop_commits(git);
	return true;
}
