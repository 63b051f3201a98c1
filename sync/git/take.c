/* SPDX-License-Identifier: MIT */
#include "sync/git/take.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path_quote.h"
#include "base/point.h"
#include "base/text.h"
#include "sync/git/commits.h"
#include "sync/git/take_impl.h"

static const char heads[] = "refs/heads/";
static const char empty_tree[] = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

enum { LIST_MAX = 16 << 20 };

const char *take_tree_of(const char id[TAKE_ID_SIZE])
{
	return *id ? id : empty_tree;
}

/* ---- HEAD ---- */

/* The one-line answer of git to a question; "" if the answer is no. */
static bool ask_line(
	struct take *take, const char *const *words, char *line, size_t size, struct error *err)
{
	struct buf output;
	bool is_yes;
	buf_init(&output, LIST_MAX);
	struct user_git_call call = {.words = words, .output = &output};
	bool ok = user_git_ask(&take->git, &call, &is_yes, err);
	struct span text = buf_span(&output);
	size_t length = ok && is_yes && text.len > 0 ? text.len - 1 : 0;
	if (ok && length >= size) {
		ok = error_set(err, ERROR_LIMIT, "git %s: the name is too long", words[0]);
	}
	if (ok) {
		text_whole(line, size, "%.*s", (int)length, length > 0 ? text.data : "");
	}
	buf_finish(&output);
	return ok;
}

static bool read_head(struct take *take, struct error *err)
{
	static const char *const ref[] = {"symbolic-ref", "-q", "HEAD", NULL};
	static const char *const id[] = {"rev-parse", "--verify", "-q", "HEAD^{commit}", NULL};
	if (!ask_line(take, ref, take->ref, sizeof(take->ref), err) ||
		!ask_line(take, id, take->head, sizeof(take->head), err)) {
		return false;
	}
	if (!*take->ref) {
		snprintf(take->ref, sizeof(take->ref), "HEAD");
	}
	return true;
}

static const char *own_branch(const struct take *take)
{
	size_t skip = sizeof(heads) - 1;
	return strncmp(take->ref, heads, skip) == 0 ? take->ref + skip : NULL;
}

/* ---- the agent's branch ---- */

struct search {
	struct take *take;
	const char *name;
	char names[256]; // all names, for people
};

static bool on_branch(void *data, const struct agent_branch *found)
{
	struct search *search = data;
	struct take *take = search->take;
	const char *branch = found->name;
	if (strcmp(found->repository, take->request->repository) != 0) {
		return true;
	}
	char *quoted = path_quote(span_of(branch));
	text_append(
		search->names, sizeof(search->names), "%s%s", search->names[0] ? ", " : "", quoted);
	free(quoted);
	if (search->name && strcmp(branch, search->name) == 0 && strlen(branch) < TAKE_NAME_MAX) {
		text_whole(take->taken, sizeof(take->taken), "%s", branch);
		mem_set_text(&take->taken_ref, found->ref);
		take->request->store->git->oid_tostr(take->tip, sizeof(take->tip), &found->tip);
	}
	return true;
}

static bool on_commit(void *data, const struct agent_commit *commit)
{
	return true;
}

static bool fail_branch(const struct search *search, struct error *err)
{
	if (!*search->names) {
		return error_set(err, ERROR_CONFIG, "no agent has committed anything in %s",
			search->take->request->root);
	}
	if (!search->name) {
		return error_set(err, ERROR_CONFIG,
			"HEAD is on no branch: name the agent's; there are %s", search->names);
	}
	char *quoted = path_quote(span_of(search->name));
	error_set(err, ERROR_CONFIG,
		"no agent has committed to a branch %s: name another; there are %s", quoted,
		search->names);
	free(quoted);
	return false;
}

static bool find_branch(struct take *take, struct error *err)
{
	const struct take_request *request = take->request;
	struct search search = {
		.take = take, .name = request->branch ? request->branch : own_branch(take)};
	struct agent_commits_visitor visitor = {on_branch, on_commit, &search};
	return agent_commits_list(request->store, 1, &visitor, err) &&
	       (*take->tip || fail_branch(&search, err));
}

/* Copies the commits into the repository; no ref leads to them yet. */
static bool fetch(struct take *take, struct error *err)
{
	const char *const words[] = {"fetch", "-q", "--no-tags", "--no-write-fetch-head",
		"--no-recurse-submodules", "--upload-pack=git-upload-pack", "--",
		take->request->store->path, take->taken_ref, NULL};
	struct user_git_call call = {.words = words};
	return user_git_run(&take->git, &call, err);
}

/* ---- what could be in the way ---- */

/*
 * Checks for an operation that git has begun in this work tree, by the file that it leaves for the
 * time.
 */
static bool check_operations(const struct take *take, struct error *err)
{
	static const struct {
		const char *file, *what;
	} operations[] = {
		{"rebase-merge", "rebase"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick or revert"},
		{"BISECT_LOG", "bisect"},
	};
	for (size_t i = 0; i < ARRAY_LENGTH(operations); i++) {
		char path[PATH_MAX + 32];
		text_whole(path, sizeof(path), "%s/%s", take->git.repository.folder,
			operations[i].file);
		if (access(path, F_OK) == 0) {
			return error_set(err, ERROR_UNAVAILABLE,
				"a git %s is in progress in %s: finish or abort it first (git "
				"status says how)",
				operations[i].what, take->request->root);
		}
	}
	return true;
}

/*
 * How many work trees have HEAD's branch. In git's list each entry ends in an empty line. An entry
 * with "prunable" does not count, because its folder is gone.
 */
static size_t count_worktrees(const struct take *take, struct span text)
{
	static const char gone[] = "\nprunable";
	char line[TAKE_NAME_MAX + 16];
	size_t length = (size_t)snprintf(line, sizeof(line), "\nbranch %s\n", take->ref);
	size_t count = 0;
	for (size_t at = 0; at < text.len;) {
		const char *entry = text.data + at;
		const char *end = memmem(entry, text.len - at, "\n\n", 2);
		size_t size = end ? (size_t)(end - entry) + 1 : text.len - at;
		count += memmem(entry, size, line, length) &&
		         !memmem(entry, size, gone, sizeof(gone) - 1);
		at += size + 1;
	}
	return count;
}

/* Another work tree with the same branch would keep the files of the old commit. */
static bool check_worktrees(struct take *take, struct error *err)
{
	static const char *const words[] = {"worktree", "list", "--porcelain", NULL};
	struct buf output;
	if (!own_branch(take)) {
		return true;
	}
	buf_init(&output, LIST_MAX);
	struct user_git_call call = {.words = words, .output = &output};
	bool ok = user_git_run(&take->git, &call, err);
	size_t count = ok ? count_worktrees(take, buf_span(&output)) : 0;
	buf_finish(&output);
	if (count > 1) {
		ok = error_set(err, ERROR_UNAVAILABLE,
			"%s is checked out in another work tree as well (git worktree list): "
			"switch to another branch there first",
			own_branch(take));
	}
	return ok;
}

static bool is_ancestor(
	struct take *take, const char *of, const char *id, bool *out_yes, struct error *err)
{
	const char *const words[] = {"merge-base", "--is-ancestor", of, id, NULL};
	struct user_git_call call = {.words = words};
	return user_git_ask(&take->git, &call, out_yes, err);
}

/* Whether HEAD's branch can be moved to the tip, or already has it. */
static bool check_history(struct take *take, bool *out_has_all, struct error *err)
{
	bool is_behind;
	*out_has_all = false;
	if (!*take->head) {
		return true;
	}
	if (!is_ancestor(take, take->tip, take->head, out_has_all, err)) {
		return false;
	}
	if (*out_has_all) {
		return true;
	}
	if (!is_ancestor(take, take->head, take->tip, &is_behind, err)) {
		return false;
	}
	const char *own = own_branch(take) ? own_branch(take) : "HEAD";
	return is_behind ||
	       error_set(err, ERROR_UNAVAILABLE,
		       "%s has moved: your commit %.12s is not an ancestor of the agent's "
		       "commit %.12s, so nothing was moved. Commit your changes, then run "
		       "`git merge %.12s`: equal changes do not conflict",
		       own, take->head, take->tip, take->tip);
}

/* ---- moving ---- */

/* An id of "" means that there is no such commit. */
static bool move_ref(
	struct take *take, const char *from, const char *to, const char *why, struct error *err)
{
	static const char none[] = "0000000000000000000000000000000000000000";
	const char *old = *from ? from : none;
	char message[TAKE_NAME_MAX + 64];
	text_format(message, sizeof(message), "acp-broker commits take%s", why);
	const char *const update[] = {
		"update-ref", "--create-reflog", "-m", message, take->ref, to, old, NULL};
	const char *const delete[] = {"update-ref", "-m", message, "-d", take->ref, old, NULL};
	struct user_git_call call = {.words = *to ? update : delete};
	return user_git_run(&take->git, &call, err);
}

/*
 * Undoes a move, however far that has come. Moves the branch first. So if this is interrupted, the
 * changes are staged, and not their opposite.
 */
static bool move_back(struct take *take, const struct take_note *note, struct error *err)
{
	if (!take_draft(take, err) || !take_move_draft(take, note->after, note->before, err)) {
		return false;
	}
	bool is_moved = strcmp(take->ref, note->ref) == 0 && strcmp(take->head, note->now) == 0;
	if (is_moved && !move_ref(take, note->now, note->old, " --undo", err)) {
		return false;
	}
	point("commits.back");
	return take_publish(take, err);
}

/*
 * Moves back and removes the note. If files are staged that git would overwrite, they are the
 * user's, and the note is removed too. After any other failure the note stays, so that the next
 * call tries again.
 */
static bool end_back(struct take *take, const struct take_note *note, struct error *err)
{
	char name[TAKE_NOTE_NAME_SIZE];
	if (move_back(take, note, err) || strstr(err->text, "would be overwritten")) {
		return take_note_set(take->request, note, TAKE_NONE, err);
	}
	return error_prefix(err,
		"an interrupted commits take in %s could not be undone; the next one tries again, "
		"unless %s/%s is removed",
		take->request->root, take->request->store->path,
		take_note_name(take->request, TAKE_BEGUN, name));
}

/* Handles the note of a killed call: it counts as done if the branch has moved. */
static bool recover(struct take *take, struct take_note *note, struct error *err)
{
	take_note_read(take->request, note);
	if (note->state != TAKE_BEGUN) {
		return true;
	}
	bool is_same = strcmp(note->ref, take->ref) == 0;
	if (is_same && strcmp(note->now, take->head) == 0) {
		bool ok = take_note_set(take->request, note, TAKE_DONE, err);
		note->state = TAKE_DONE;
		return ok;
	}
	bool is_old = is_same && strcmp(note->old, take->head) == 0;
	bool ok = is_old ? end_back(take, note, err)
	                 : take_note_set(take->request, note, TAKE_NONE, err);
	take_note_read(take->request, note);
	return ok;
}

/*
 * Moves the index first. So if this is interrupted, the agent's changes are staged, and not their
 * opposite.
 */
static bool move(struct take *take, struct error *err)
{
	char why[TAKE_NAME_MAX + 8];
	struct take_note note;
	text_format(why, sizeof(why), " %s", take->taken);
	if (!take_note_begin(take, err)) {
		return false;
	}
	take_note_read(take->request, &note);
	bool ok = take_publish(take, err) && move_ref(take, take->head, take->tip, why, err);
	point("commits.moved");
	if (ok) {
		return take_note_set(take->request, &note, TAKE_DONE, err);
	}
	struct error second; // git may have moved HEAD and failed, so we ask again where it is
	if (!read_head(take, &second) || !end_back(take, &note, &second)) {
		error_prefix(err, "%s", second.text);
	}
	return false;
}

/* ---- all of it ---- */

static bool begin(struct take *take, struct take_note *note, struct error *err)
{
	return take_lock(take, err) && read_head(take, err) && recover(take, note, err) &&
	       check_operations(take, err) && check_worktrees(take, err);
}

static void fill_names(const struct take *take, struct take_result *result)
{
	const char *own = own_branch(take) ? own_branch(take) : "HEAD";
	memcpy(result->branch, own, strlen(own) + 1);
	memcpy(result->taken, take->taken, sizeof(result->taken));
}

static bool count_commits(struct take *take, size_t *out_count, struct error *err)
{
	char range[2 * TAKE_ID_SIZE + 4];
	char line[32];
	text_whole(range, sizeof(range), "%s%s%s", take->head, *take->head ? ".." : "", take->tip);
	const char *const words[] = {"rev-list", "--count", range, "--", NULL};
	if (!user_git_line(&take->git, words, false, line, sizeof(line), err)) {
		return false;
	}
	*out_count = strtoull(line, NULL, 10);
	return true;
}

/* The branch of HEAD gives the agent's branch; it is read again after the index is locked. */
static bool find(struct take *take, struct error *err)
{
	return read_head(take, err) && find_branch(take, err) && fetch(take, err);
}

static bool take_all(struct take *take, struct take_result *result, struct error *err)
{
	struct take_note note;
	if (!find(take, err) || !begin(take, &note, err) ||
		!check_history(take, &result->has_all, err)) {
		return false;
	}
	fill_names(take, result);
	memcpy(result->old, take->head, sizeof(result->old));
	memcpy(result->now, take->tip, sizeof(result->now));
	if (result->has_all) {
		return true;
	}
	if (!take_draft(take, err) || !count_commits(take, &result->commits, err) ||
		!take_write_tree(take, take->before, err) || !take_check(take, err) ||
		!take_write_tree(take, take->after, err)) {
		return false;
	}
	result->files = take->files;
	return move(take, err);
}

static bool check_undo(const struct take *take, const struct take_note *note, struct error *err)
{
	if (note->state == TAKE_NONE) {
		return error_set(err, ERROR_UNAVAILABLE, "there is nothing to undo in %s",
			take->request->root);
	}
	if (strcmp(take->ref, note->ref) != 0 || strcmp(take->head, note->now) != 0) {
		return error_set(err, ERROR_UNAVAILABLE,
			"HEAD has moved since the last commits take (%s at %.12s), so "
			"nothing was moved; it was at %.12s before that: git reflog shows all",
			note->ref, note->now, *note->old ? note->old : "no commit");
	}
	return true;
}

static bool undo_all(struct take *take, struct take_result *result, struct error *err)
{
	struct take_note note;
	if (!read_head(take, err) || !begin(take, &note, err) || !check_undo(take, &note, err) ||
		!take_note_set(take->request, &note, TAKE_BEGUN, err)) {
		return false;
	}
	note.state = TAKE_BEGUN;
	memcpy(take->taken, note.taken, sizeof(take->taken));
	if (!move_back(take, &note, err)) {
		return false; // the next call sees from HEAD how far it came
	}
	fill_names(take, result);
	memcpy(result->old, note.now, sizeof(result->old));
	memcpy(result->now, note.old, sizeof(result->now));
	return take_note_set(take->request, &note, TAKE_NONE, err);
}

/* A signal during this ends the command afterwards: no lock of git's is left behind. */
static bool with_signals_held(struct take *take, struct take_result *result, struct error *err,
	bool (*act)(struct take *, struct take_result *, struct error *))
{
	sigset_t held, before;
	sigemptyset(&held);
	sigaddset(&held, SIGHUP);
	sigaddset(&held, SIGINT);
	sigaddset(&held, SIGQUIT);
	sigaddset(&held, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &held, &before);
	bool ok = act(take, result, err);
	take_unlock(take);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ok;
}

static bool act_on(const struct take_request *request, struct take_result *result,
	struct error *err, bool (*act)(struct take *, struct take_result *, struct error *))
{
	struct take take = {.request = request};
	*result = (struct take_result){.has_all = false};
	bool may_be_part = !*request->repository;
	bool ok = user_git_open(&take.git, request->root, may_be_part, request->environment, err) &&
	          with_signals_held(&take, result, err, act);
	user_git_finish(&take.git);
	free(take.taken_ref);
	return ok;
}

bool take_commits(
	const struct take_request *request, struct take_result *out_result, struct error *err)
{
	return act_on(request, out_result, err, take_all);
}

bool take_undo(
	const struct take_request *request, struct take_result *out_result, struct error *err)
{
	return act_on(request, out_result, err, undo_all);
}
