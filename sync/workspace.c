/* SPDX-License-Identifier: MIT */
#include "sync/workspace_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/path_quote.h"
#include "base/text.h"
#include "base/words.h"
#include "sync/id.h"

const char *sync_reason_name(enum sync_reason reason)
{
	static const char *const names[] = {"start", "turn", "stop", "crash"};
	assert((size_t)reason < ARRAY_LENGTH(names));
	return names[reason];
}

const git_oid *workspace_tree(const struct workspace *workspace)
{
	return workspace->has_tree ? &workspace->tree : NULL;
}

void workspace_hurry(struct workspace *workspace)
{
	workspace->is_hurried = true; // the next try of the lock is the last
}

const struct deletions *workspace_question(const struct workspace *workspace)
{
	const struct round *round = &workspace_work(workspace)->round;
	return round->asks ? &round->deletions : NULL;
}

static void add_always(struct workspace *workspace, char *const *paths)
{
	for (; *paths; paths++) {
		char **known = workspace->always_held;
		while (known && *known && strcmp(*known, *paths) != 0) {
			known++;
		}
		if (!known || !*known) {
			words_append(&workspace->always_held, *paths);
		}
	}
}

void workspace_answer_held(struct workspace *workspace, const git_oid *tree, char *const *paths,
	enum held_answer answer)
{
	if (answer == HELD_NO) {
		workspace->refused_held[1] = *tree;
		return;
	}
	workspace->allowed_held = *tree;
	workspace->has_allowed_held = true;
	if (answer == HELD_ALWAYS) {
		add_always(workspace, paths);
	}
}

const char *workspace_transport(const struct workspace *workspace)
{
	return workspace->transport ? transport_name(workspace->transport) : NULL;
}

/* ---- the end of a sync ---- */

struct sync_order sync_order_copy(const struct sync_order *order)
{
	struct sync_order copy = *order;
	copy.session = mem_strdup_or_null(order->session);
	copy.name = mem_strdup_or_null(order->name);
	copy.rollback = mem_strdup_or_null(order->rollback);
	return copy;
}

void sync_order_finish(struct sync_order *order)
{
	free((char *)order->session);
	free((char *)order->name);
	free((char *)order->rollback);
	*order = (struct sync_order){0};
}

static void raise_end(
	struct workspace *workspace, const struct sync_result *result, const struct error *err)
{
	workspace_sync_done *done = workspace->done;
	workspace->done = NULL;
	sync_order_finish(&workspace_work(workspace)->order);
	done(workspace->data, result, err); // may destroy the workspace
}

void workspace_fail(struct workspace *workspace, const struct error *err)
{
	struct error copy = *err;
	workspace_unlock(workspace);
	error_prefix(&copy, "syncing %s", workspace->request->local_root);
	raise_end(workspace, NULL, &copy);
}

enum { NOTE_MAX = 4096 }; // enough for all parts

static void add_note(char note[NOTE_MAX], const char *text)
{
	if (*text) {
		text_append(note, NOTE_MAX, "%s%s", note[0] ? "; " : "", text);
	}
}

static void add_left(char note[NOTE_MAX], const struct transport_left *left)
{
	char text[sizeof(left->first) + 100];
	char more[40] = "";
	if (left->count > 1) {
		snprintf(more, sizeof(more), " and %zu more", left->count - 1);
	}
	text_format(text, sizeof(text), "left in the sandbox because it could not be synced: %s%s",
		left->first, more);
	add_note(note, text);
}

/*
 * Whether the user has not been told of this set of paths yet. So each set is told once, even if
 * the sets alternate: for example, if a file is busy in every other sync.
 */
static bool is_left_news(struct workspace *workspace)
{
	uint64_t print = workspace->left.print;
	size_t known = workspace->told_left_count;
	for (size_t i = 0; i < known && i < TOLD_LEFT_MAX; i++) {
		if (workspace->told_left[i] == print) {
			return false;
		}
	}
	workspace->told_left[known % TOLD_LEFT_MAX] = print;
	workspace->told_left_count++;
	return true;
}

enum { NAMED_MAX = 3, NAMES_SIZE = 512 };

/*
 * Takes the paths that the user was not told about yet, so that the user is told of each path once.
 * A note names only a few.
 */
static bool take_names(const struct stuck *paths, struct stuck *told, char names[NAMES_SIZE])
{
	size_t count = 0;
	names[0] = '\0';
	for (size_t i = 0; i < paths->count; i++) {
		const char *path = paths->paths[i].path;
		if (stuck_find(told, path)) {
			continue;
		}
		stuck_add(told, path, paths->paths[i].why);
		if (++count <= NAMED_MAX) {
			char shown[154];
			char *quoted = path_quote(span_of(path));
			text_format(shown, sizeof(shown), "%s", quoted);
			text_append(names, NAMES_SIZE, "%s%s", names[0] ? ", " : "", shown);
			free(quoted);
		}
	}
	if (count > NAMED_MAX) {
		text_append(names, NAMES_SIZE, " and %zu more", count - NAMED_MAX);
	}
	return count > 0;
}

static void add_busy(struct workspace *workspace, const struct round *round, char note[NOTE_MAX])
{
	char names[NAMES_SIZE], text[NAMES_SIZE + 160];
	if (take_names(&round->busy, &workspace->told_busy, names)) {
		text_format(text, sizeof(text),
			"being written to while they are read: %s: the sandbox keeps their old "
			"versions until a sync can read the whole files",
			names);
		add_note(note, text);
	}
}

static void add_withheld(
	struct workspace *workspace, const struct round *round, char note[NOTE_MAX])
{
	const struct stuck *withheld = &round->withheld;
	char names[NAMES_SIZE], text[NAMES_SIZE + 160];
	if (take_names(withheld, &workspace->told_withheld, names)) {
		text_format(text, sizeof(text),
			"only in the sandbox, and not brought here because %s: %s",
			withheld->paths[0].why, names);
		add_note(note, text);
	}
}

static void add_moved(struct workspace *workspace, const struct merge *merge, char note[NOTE_MAX])
{
	char names[NAMES_SIZE], text[NAMES_SIZE + 160];
	struct stuck paths = {0};
	LIST_FOR_EACH(moved, &merge->moved, struct held_change, link) {
		stuck_add(&paths, moved->path, "");
	}
	if (take_names(&paths, &workspace->told_moved, names)) {
		text_format(text, sizeof(text),
			"not deleted here because the agent's new place for it is not synced: "
			"%s",
			names);
		add_note(note, text);
	}
	stuck_finish(&paths);
}

/* A path that was delivered since is told again if it fails again. */
static void add_undelivered(struct workspace *workspace, char note[NOTE_MAX])
{
	struct stuck *undelivered = &workspace_work(workspace)->round.undelivered;
	struct stuck still;
	char names[NAMES_SIZE], text[NAMES_SIZE + 200];
	bool is_news = take_names(undelivered, &workspace->told_undelivered, names);
	stuck_intersect(&still, undelivered, &workspace->told_undelivered);
	stuck_finish(&workspace->told_undelivered);
	workspace->told_undelivered = still;
	if (is_news) {
		text_format(text, sizeof(text),
			"not brought to the sandbox, which keeps its version until a sync can "
			"replace it: %s (%s)",
			names, undelivered->paths[0].why);
		add_note(note, text);
	}
}

/*
 * Notes what is new for the user. Repeated notes, and notes that differ only in a number, are
 * dropped.
 */
static void take_news(struct workspace *workspace, const struct merge *merge, char note[NOTE_MAX])
{
	const struct round *round = &workspace_work(workspace)->round;
	if (strcmp(workspace->note, workspace->told_note) != 0) {
		add_note(note, workspace->note);
	}
	memcpy(workspace->told_note, workspace->note, sizeof(workspace->told_note));
	workspace->note[0] = '\0';
	if (workspace->left.count > 0 && is_left_news(workspace)) {
		add_left(note, &workspace->left);
	}
	add_busy(workspace, round, note);
	add_withheld(workspace, round, note);
	add_moved(workspace, merge, note);
	add_undelivered(workspace, note);
	if (strcmp(round->note, workspace->told) != 0) {
		add_note(note, round->note);
	}
	text_format(workspace->told, sizeof(workspace->told), "%s", round->note);
	add_note(note, round->warning);
	workspace->told_excess = round->told_excess;
}

/* Whether there is nothing to ask: an answer may have come during the sync. */
static bool is_answered(const struct workspace *workspace, const struct round *round)
{
	const git_oid *asked = &round->asked_held;
	return round->asked_count == 0 || id_equal(asked, &workspace->refused_held[1]) ||
	       (workspace->has_allowed_held && id_equal(asked, &workspace->allowed_held));
}

void workspace_succeed(struct workspace *workspace)
{
	const struct work *work = workspace_work(workspace);
	struct round *round = &workspace->work->round;
	struct merge merge;
	workspace_unlock(workspace);
	workspace->has_tree = true;
	workspace->tree = round->target;
	/* The next sync may begin before the listener has read this result. */
	merge_move(&merge, &round->merge);
	round->has_merge = false;
	struct sync_result result = {
		.reason = work->order.reason,
		.tree = round->target,
		.checkpoint = work->checkpoint,
		.runtime_tree = round->runtime,
		.files = round->files,
		.to_local = merge.to_local,
		.to_runtime = merge.to_runtime,
		.text_merges = merge.text_merges,
		.conflicts = &merge.conflicts,
		.conflict_count = merge.conflict_count,
		.held = &merge.held,
		.held_count = merge.held_count,
		.held_tree = round->asked_held,
		.is_held_news =
			merge.held_count > 0 && !id_equal(&round->held, &workspace->told_held),
		.is_held_answered = is_answered(workspace, round),
		.kept = round->kept,
		.followed = round->followed,
		.gone = round->gone,
		.left = workspace->left.count + round->withheld.count,
		.first_left = workspace->left.count || !round->withheld.count
	                              ? workspace->left.first
	                              : round->withheld.paths[0].path,
		.commits_left = workspace->commits_left,
		.sent_bytes = workspace->sent_bytes,
		.received_bytes = workspace->received_bytes,
		.duration_ms = clock_now_ms() - workspace->started_ms,
	};
	char note[NOTE_MAX] = "";
	workspace->told_held = round->held;
	workspace->refused_held[0] = round->still_refused;
	if (round->has_allowed && id_equal(&round->allowed, &workspace->allowed_held)) {
		workspace->has_allowed_held = false; // it was used
	}
	take_news(workspace, &merge, note);
	result.note = note;
	raise_end(workspace, &result, NULL);
	merge_finish(&merge);
}

/* A step on the pool may outlive its caller. */
static void request_copy(struct workspace_request *request)
{
	request->store_folder = mem_strdup(request->store_folder);
	request->name = mem_strdup(request->name);
	request->local_root = mem_strdup(request->local_root);
	request->runtime_root = mem_strdup(request->runtime_root);
	request->home = mem_strdup_or_null(request->home);
	request->include = (const char *const *)words_copy(request->include);
	request->exclude = (const char *const *)words_copy(request->exclude);
	request->guard_paths = guard_paths_copy(request->guard_paths);
}

static void request_free(struct workspace_request *request)
{
	free((char *)request->store_folder);
	free((char *)request->name);
	free((char *)request->local_root);
	free((char *)request->runtime_root);
	free((char *)request->home);
	words_free((char **)request->include);
	words_free((char **)request->exclude);
	guard_paths_destroy((struct guard_paths *)request->guard_paths);
}

static void drop(struct pool_job *job)
{
	struct work *work = CONTAINER_OF(job, struct work, job);
	sync_order_finish(&work->order);
	round_finish(&work->round);
	work_unlock(work);
	if (work->request.guard) {
		work->request.guard->destroy(work->request.guard);
	}
	if (work->is_open) {
		store_close(&work->store);
	}
	request_free(&work->request);
	free(work);
}

/* ---- for the caller ---- */

struct workspace *workspace_create(const struct workspace_request *request)
{
	struct workspace *workspace = mem_alloc_zero(sizeof(*workspace));
	struct work *work = mem_alloc_zero(sizeof(*work));
	work->request = *request;
	request_copy(&work->request);
	work->request.is_confined =
		request->sandbox && sandbox_capabilities(request->sandbox)->confined;
	work->job.drop = drop;
	work->workspace = workspace;
	work->lock_fd = -1;
	round_init(&work->round);
	workspace->work = work;
	workspace->request = &work->request;
	for (int i = 0; i < ROUND_REFUSED; i++) {
		workspace->refused_held[i] = store_empty_tree;
	}
	workspace_steps_init(workspace);
	return workspace;
}

void workspace_destroy(struct workspace *workspace)
{
	if (!workspace) {
		return;
	}
	ev_timer_stop(workspace->request->loop, &workspace->lock_retry);
	soon_stop(&workspace->start);
	transport_destroy(workspace->transport);
	workspace->work->is_cancelled = true;
	pool_leave(&workspace->work->job);
	stuck_finish(&workspace->told_busy);
	stuck_finish(&workspace->told_withheld);
	stuck_finish(&workspace->told_moved);
	stuck_finish(&workspace->told_undelivered);
	words_free(workspace->always_held);
	free(workspace);
}

void workspace_sync(struct workspace *workspace, const struct sync_order *order,
	workspace_sync_done *done, void *data)
{
	assert(!workspace->done);
	workspace_work(workspace)->order = sync_order_copy(order);
	workspace->done = done;
	workspace->data = data;
	soon_start(&workspace->start);
}
