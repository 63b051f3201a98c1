/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/point.h"
#include "base/timestamp.h"
#include "base/words.h"

enum { WHAT_MAX = 320 };

struct task *keeper_task(struct keeper *keeper)
{
	return LIST_FIRST(&keeper->tasks, struct task, link);
}

/* ---- the end of a task ---- */

static void task_note_error(struct task *task, const struct error *err)
{
	if (!task->has_failed) {
		task->has_failed = true;
		task->err = *err;
	}
}

static void task_free(struct task *task)
{
	free(task->session);
	free(task->name);
	free(task->rollback);
	words_free(task->roots);
	free(task);
}

void keeper_end_task(struct keeper *keeper, const struct error *err)
{
	struct task *task = keeper_task(keeper);
	if (err) {
		task_note_error(task, err);
	}
	list_remove(&task->link);
	if (!list_is_empty(&keeper->tasks)) {
		soon_start(&keeper->start);
	}
	sandbox_done *done = task->done;
	void *data = task->data;
	struct error first = task->err;
	bool has_failed = task->has_failed;
	task_free(task);
	done(data, has_failed ? &first : NULL);
}

/* ---- records ---- */

void keep_save(struct keep *keep, enum record_state state, record_saved *done)
{
	char now[TIMESTAMP_SIZE];
	keep->record.state = state;
	snprintf(keep->record.updated, sizeof(keep->record.updated), "%s", timestamp_now(now));
	record_saver_save(keep->keeper->saver, &keep->record, done, keep);
}

static void on_saved_last(void *data, const struct error *err)
{
	struct keep *keep = data;
	point("keeper.done");
	if (err) {
		task_note_error(keeper_task(keep->keeper), err);
	} else {
		keep_tell_state(keep);
	}
	keeper_next(keep->keeper);
}

/* ---- syncs ---- */

/*
 * The state a root is in after a sync went well. What is to be destroyed, or to rest, is stopped
 * only once it is: until then the receipt says that all of it is here.
 */
static enum record_state state_after(const struct task *task, const struct keep *keep)
{
	if (task->kind == TASK_CLOSE) {
		return keeper_fate(keep->keeper) == FATE_STAYS ? RECORD_STOPPED : RECORD_COLLECTING;
	}
	return keeper_state_between(keep);
}

struct keeper_event keeper_event_of(const struct keep *keep, const struct task *task)
{
	return (struct keeper_event){
		keep->record.local_root, task->reason, task->session, task->data};
}

static workspace_sync_done on_synced;

void keeper_sync_keep(struct keep *keep)
{
	struct keeper *keeper = keep->keeper;
	const struct task *task = keeper_task(keeper);
	struct sync_order order = {.reason = task->reason,
		.session = task->session,
		.name = task->name,
		.rollback = task->rollback,
		.deletions = task->deletions,
		.asked = task->asked};
	workspace_sync(keep->workspace, &order, on_synced, keep);
}

/* What is in a sandbox that goes alone would go with it: that is no last sync. */
static bool is_whole(const struct keep *keep, const struct task *task,
	const struct sync_result *result, struct error *err)
{
	bool would_go = keep->keeper->config.settings->persistence == PERSISTENCE_TRANSIENT;
	char what[WHAT_MAX];
	if (task->kind != TASK_CLOSE || !would_go || (result->left == 0 && !result->commits_left)) {
		return true;
	}
	if (result->left > 0) {
		snprintf(what, sizeof(what),
			"%zu of the files in the sandbox could not be taken from there (the first: "
			"%s)",
			result->left, result->first_left);
	} else {
		snprintf(
			what, sizeof(what), "commits in the sandbox could not be taken from there");
	}
	return error_set(err, ERROR_DENIED,
		"%s, and would go with it. They are in %s; acp-broker sessions discard %s gives "
		"them up",
		what, keep->record.runtime_root, keep->record.id);
}

static void on_synced(void *data, const struct sync_result *result, const struct error *err)
{
	struct keep *keep = data;
	struct keeper *keeper = keep->keeper;
	struct task *task = keeper_task(keeper);
	const struct deletions *question = err ? workspace_question(keep->workspace) : NULL;
	point("keeper.synced");
	if (question) {
		keeper_ask(keep, question);
		return;
	}
	struct keeper_event event = keeper_event_of(keep, task);
	if (!err && task->deletions != SYNC_DELETIONS_ASK) {
		keeper->has_answer = false; // it was acted on: another time it is asked again
	}
	struct error partial;
	if (!err && !is_whole(keep, task, result, &partial)) {
		err = &partial;
	}
	keep_note_sync(keep, task, result, err);
	keeper->config.listener->on_ended(keeper->config.data, &event, result, err);
	if (err) {
		task_note_error(task, err);
		/* A turn that could not be synced ends nothing: the next one tries again. */
		keep_save(keep, task->kind == TASK_SYNC ? keep->record.state : RECORD_FAILED,
			on_saved_last);
		return;
	}
	keep->is_opened = true;
	keep_save(keep, state_after(task, keep), on_saved_last);
}

static void on_saved_before(void *data, const struct error *err)
{
	struct keep *keep = data;
	point("keeper.saved");
	if (err) {
		task_note_error(keeper_task(keep->keeper), err);
		keeper_next(keep->keeper);
		return;
	}
	keep_tell_state(keep);
	if (keep->workspace) {
		keeper_sync_keep(keep);
	} else {
		keep->is_opened = true;
		keep_save(keep, state_after(keeper_task(keep->keeper), keep), on_saved_last);
	}
}

/* ---- the tasks ---- */

static void close_sandbox(struct keeper *keeper)
{
	const struct task *task = keeper_task(keeper);
	keeper_prune(keeper);
	enum sandbox_fate fate = task->has_failed             ? FATE_STAYS
	                         : task->kind == TASK_DISCARD ? FATE_ENDS
	                                                      : keeper_fate(keeper);
	if (fate == FATE_STAYS) {
		keeper_end_task(keeper, NULL);
	} else {
		keeper_end_sandbox(keeper, fate);
	}
}

/* A broker before this one was about to destroy it: a part of it may be gone. */
static bool was_collected(const struct keep *keep)
{
	return keep->record.state == RECORD_COLLECTING && *keep->record.receipt.runtime_tree;
}

static bool concerns(const struct task *task, const struct keep *keep)
{
	if (task->roots && !keep_is_named(keep, task->roots)) {
		return false;
	}
	if (task->kind == TASK_SYNC) {
		return keep->workspace && (keep->is_opened || task->roots);
	}
	if (task->kind == TASK_DISCARD) {
		return false;
	}
	return (task->kind == TASK_CLOSE &&
		       !(task->reason == SYNC_REASON_CRASH && was_collected(keep))) ||
	       (task->kind == TASK_OPEN && !keep->is_opened);
}

/* Nothing is taken for synced that nobody knows. */
static void check_names(struct keeper *keeper)
{
	struct error err;
	struct task *task = keeper_task(keeper);
	bool is_known = !task->roots || !task->roots[0];
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		is_known = is_known || keep_is_named(keep, task->roots);
	}
	if (!is_known) {
		error_set(&err, ERROR_NOT_FOUND, "syncing %s: it is no root of the sandbox",
			task->roots[0]);
		task_note_error(task, &err);
	}
}

/* The one after the one in hand; the task ends after the last. */
void keeper_next(struct keeper *keeper)
{
	struct task *task = keeper_task(keeper);
	if (!task->has_prepared && task->kind != TASK_SYNC) {
		task->has_prepared = true;
		if (keeper_add_roots(keeper)) {
			return;
		}
	}
	struct list *next = task->keep ? task->keep->link.next : keeper->keeps.next;
	while (next != &keeper->keeps && !concerns(task, LIST_ENTRY(next, struct keep, link))) {
		next = next->next;
	}
	if (next == &keeper->keeps) {
		check_names(keeper);
		if (task->kind == TASK_CLOSE || task->kind == TASK_DISCARD) {
			close_sandbox(keeper);
		} else {
			keeper_end_task(keeper, NULL);
		}
		return;
	}
	task->keep = LIST_ENTRY(next, struct keep, link);
	task->deletions = task->asks ? SYNC_DELETIONS_ASK : SYNC_DELETIONS_KEEP;
	task->questions = 0;
	if (task->kind == TASK_SYNC) {
		keeper_sync_keep(task->keep);
	} else {
		task->keep->record.receipt = (struct record_receipt){0}; // of what was before
		keep_save(task->keep, task->kind == TASK_OPEN ? RECORD_SYNCING : RECORD_COLLECTING,
			on_saved_before);
	}
}

static void on_start(struct soon *soon)
{
	struct keeper *keeper = CONTAINER_OF(soon, struct keeper, start);
	struct task *task = keeper_task(keeper);
	if (task->is_back) {
		task->is_back = false;
		keeper_sync_keep(task->keep);
	} else {
		keeper_next(keeper);
	}
}

static void ask(struct keeper *keeper, const struct task *wanted)
{
	struct task *task = mem_alloc_zero(sizeof(*task));
	bool is_first = list_is_empty(&keeper->tasks);
	*task = *wanted;
	list_append(&keeper->tasks, &task->link);
	if (is_first) {
		soon_start(&keeper->start);
	}
}

/* ---- for the caller ---- */

struct keeper *keeper_create(const struct keeper_config *config)
{
	struct keeper *keeper = mem_alloc_zero(sizeof(*keeper));
	keeper->config = *config;
	keeper->saver = record_saver_create(config->loop, config->pool, config->state_folder);
	list_init(&keeper->keeps);
	list_init(&keeper->tasks);
	list_init(&keeper->aside);
	list_init(&keeper->pausings);
	list_init(&keeper->announced);
	list_init(&keeper->announcing);
	soon_init(&keeper->start, keeper->config.loop, on_start);
	return keeper;
}

void keeper_destroy(struct keeper *keeper)
{
	if (!keeper) {
		return;
	}
	soon_stop(&keeper->start);
	keeper_drop_naming(keeper);
	keeper_drop_ending(keeper);
	keeper_drop_announced(keeper);
	list_move_all(&keeper->tasks, &keeper->aside);
	LIST_FOR_EACH(task, &keeper->tasks, struct task, link) {
		list_remove(&task->link);
		task_free(task);
	}
	record_saver_destroy(keeper->saver);
	keeper_drop_pausings(keeper);
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		keep_destroy(keep);
	}
	free(keeper);
}

static char **copy_or_null(char *const *words)
{
	return words ? words_copy((const char *const *)words) : NULL;
}

void keeper_open(struct keeper *keeper, char *const *roots, sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_OPEN,
			    .reason = SYNC_REASON_START,
			    .roots = copy_or_null(roots),
			    .done = done,
			    .data = data});
}

void keeper_sync(struct keeper *keeper, char *const *roots, const struct sync_order *order,
	sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_SYNC,
			    .reason = order->reason,
			    .session = mem_strdup_or_null(order->session),
			    .name = mem_strdup_or_null(order->name),
			    .rollback = mem_strdup_or_null(order->rollback),
			    .asks = order->deletions == SYNC_DELETIONS_ASK,
			    .roots = copy_or_null(roots),
			    .done = done,
			    .data = data});
}

void keeper_close(struct keeper *keeper, sandbox_done *done, void *data)
{
	keeper->is_closing = true;
	keeper_hurry_announcing(keeper);
	ask(keeper, &(struct task){.kind = TASK_CLOSE,
			    .reason = SYNC_REASON_STOP,
			    .done = done,
			    .data = data});
}

bool keeper_is_closing(const struct keeper *keeper)
{
	return keeper->is_closing;
}

void keeper_recover(struct keeper *keeper, sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_CLOSE,
			    .reason = SYNC_REASON_CRASH,
			    .done = done,
			    .data = data});
}

void keeper_discard(struct keeper *keeper, sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_DISCARD, .done = done, .data = data});
}

void keeper_hurry(struct keeper *keeper)
{
	keeper_hurry_announcing(keeper);
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (keep->workspace) {
			workspace_hurry(keep->workspace);
		}
	}
}
