/* SPDX-License-Identifier: MIT */
#include "broker/keeper_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/point.h"
#include "broker/timestamp.h"
#include "broker/words.h"

enum task_kind { TASK_OPEN, TASK_SYNC, TASK_CLOSE };

/* What was asked for, and how far it is. */
struct task {
	struct list link; // keeper.tasks
	enum task_kind kind;
	enum sync_reason reason;
	char *session, *name, *rollback; // owned, as in struct sync_order
	char *local_root;                // owned; of TASK_SYNC: this root alone; NULL: all
	char **needed;                   // owned; of TASK_OPEN: what is tried again; NULL: all
	struct keep *keep;               // the one in hand; NULL: none yet
	bool has_failed;
	struct error err; // the first
	sandbox_done *done;
	void *data;
};

static void next_keep(struct keeper *keeper);

static struct task *task_in_hand(struct keeper *keeper)
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
	free(task->local_root);
	words_free(task->needed);
	free(task);
}

static void task_end(struct keeper *keeper)
{
	struct task *task = task_in_hand(keeper);
	list_remove(&task->link);
	if (!list_is_empty(&keeper->tasks)) {
		ev_timer_start(keeper->config.loop, &keeper->start);
	}
	sandbox_done *done = task->done;
	void *data = task->data;
	struct error err = task->err;
	bool has_failed = task->has_failed;
	task_free(task);
	done(data, has_failed ? &err : NULL);
}

/* ---- records ---- */

static void save(struct keep *keep, enum record_state state, record_saved *done)
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
		task_note_error(task_in_hand(keep->keeper), err);
	}
	next_keep(keep->keeper);
}

/* ---- syncs ---- */

/* The state a root is in after a sync went well. */
static enum record_state state_after(const struct task *task, const struct keep *keep)
{
	if (task->kind == TASK_CLOSE) {
		return RECORD_STOPPED;
	}
	return keep->record.session_count > 0 ? RECORD_ACTIVE : RECORD_STARTING;
}

static void on_synced(void *data, const struct sync_result *result, const struct error *err)
{
	struct keep *keep = data;
	struct keeper *keeper = keep->keeper;
	struct task *task = task_in_hand(keeper);
	point("keeper.synced");
	keep_note_sync(keep, task->reason, result, err);
	keeper->config.listener->on_ended(keeper->config.data,
		&(struct keeper_event){
			keep->record.local_root, task->reason, task->session, task->data},
		result, err);
	if (err) {
		task_note_error(task, err);
		keep->has_failed = true;
		save(keep, RECORD_FAILED, on_saved_last);
		return;
	}
	keep->is_opened = true;
	save(keep, state_after(task, keep), on_saved_last);
}

static void sync_keep(struct keep *keep)
{
	struct keeper *keeper = keep->keeper;
	const struct task *task = task_in_hand(keeper);
	struct sync_order order = {.reason = task->reason,
		.session = task->session,
		.name = task->name,
		.rollback = task->rollback};
	workspace_sync(keep->workspace, &order, on_synced, keep);
}

static void on_saved_before(void *data, const struct error *err)
{
	struct keep *keep = data;
	point("keeper.saved");
	if (err) {
		task_note_error(task_in_hand(keep->keeper), err);
		next_keep(keep->keeper);
	} else if (keep->workspace) {
		sync_keep(keep);
	} else {
		keep->is_opened = true;
		save(keep, state_after(task_in_hand(keep->keeper), keep), on_saved_last);
	}
}

/* ---- the tasks ---- */

static void on_destroyed(void *data, const struct error *err)
{
	struct keeper *keeper = data;
	if (err) {
		task_note_error(task_in_hand(keeper), err);
	}
	task_end(keeper);
}

/* Everything of a transient sandbox is here: it ends. */
static bool may_destroy(const struct keeper *keeper)
{
	return sandbox_capabilities(keeper->config.sandbox)->isolated &&
	       keeper->config.settings->persistence == PERSISTENCE_TRANSIENT &&
	       keeper->config.settings->mode != SYNC_MODE_NONE && !list_is_empty(&keeper->keeps);
}

static void close_sandbox(struct keeper *keeper)
{
	if (task_in_hand(keeper)->has_failed || !may_destroy(keeper)) {
		task_end(keeper);
		return;
	}
	struct keep *keep = LIST_FIRST(&keeper->keeps, struct keep, link);
	sandbox_destroy(keeper->config.sandbox, keep->record.receipt.runtime_tree, false,
		on_destroyed, keeper);
}

/* The same directory, however many slashes are behind it. */
static bool is_same(const char *one, const char *other)
{
	size_t length = strlen(one);
	size_t other_length = strlen(other);
	while (length > 1 && one[length - 1] == '/') {
		length--;
	}
	while (other_length > 1 && other[other_length - 1] == '/') {
		other_length--;
	}
	return length == other_length && memcmp(one, other, length) == 0;
}

static bool is_needed(const struct task *task, const struct keep *keep)
{
	for (char **needed = task->needed; needed && *needed; needed++) {
		if (is_same(*needed, keep->record.local_root)) {
			return true;
		}
	}
	return !task->needed;
}

static bool concerns(const struct task *task, const struct keep *keep)
{
	if (task->kind == TASK_SYNC) {
		return keep->is_opened && keep->workspace &&
		       (!task->local_root ||
			       strcmp(task->local_root, keep->record.local_root) == 0);
	}
	return task->kind == TASK_CLOSE ||
	       (!keep->is_opened && (!keep->has_failed || is_needed(task, keep)));
}

/* The one after the one in hand; the task ends after the last. */
static void next_keep(struct keeper *keeper)
{
	struct task *task = task_in_hand(keeper);
	struct list *next = task->keep ? task->keep->link.next : keeper->keeps.next;
	while (next != &keeper->keeps && !concerns(task, LIST_ENTRY(next, struct keep, link))) {
		next = next->next;
	}
	if (next == &keeper->keeps) {
		if (task->kind == TASK_CLOSE) {
			close_sandbox(keeper);
		} else {
			task_end(keeper);
		}
		return;
	}
	task->keep = LIST_ENTRY(next, struct keep, link);
	if (task->kind == TASK_SYNC) {
		sync_keep(task->keep);
	} else {
		save(task->keep, task->kind == TASK_OPEN ? RECORD_SYNCING : RECORD_COLLECTING,
			on_saved_before);
	}
}

static void on_start(struct ev_loop *loop, ev_timer *timer, int events)
{
	next_keep(CONTAINER_OF(timer, struct keeper, start));
}

static void ask(struct keeper *keeper, const struct task *wanted)
{
	struct task *task = mem_alloc_zero(sizeof(*task));
	bool is_first = list_is_empty(&keeper->tasks);
	*task = *wanted;
	list_append(&keeper->tasks, &task->link);
	if (is_first) {
		ev_timer_start(keeper->config.loop, &keeper->start);
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
	ev_timer_init(&keeper->start, on_start, 0., 0.);
	return keeper;
}

void keeper_destroy(struct keeper *keeper)
{
	if (!keeper) {
		return;
	}
	ev_timer_stop(keeper->config.loop, &keeper->start);
	LIST_FOR_EACH(task, &keeper->tasks, struct task, link) {
		list_remove(&task->link);
		task_free(task);
	}
	record_saver_destroy(keeper->saver);
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		keep_destroy(keep);
	}
	free(keeper);
}

static bool has_root(const struct keeper *keeper, const char *local_root)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (is_same(keep->record.local_root, local_root)) {
			return true;
		}
	}
	return false;
}

void keeper_open(struct keeper *keeper, char *const *local_roots, sandbox_done *done, void *data)
{
	char **needed = NULL;
	keeper_add_roots(keeper);
	words_append_all(&needed, (const char *const *)local_roots);
	for (size_t i = 0; local_roots[i]; i++) {
		if (!has_root(keeper, local_roots[i])) { // the sandbox calls it otherwise
			words_free(needed);
			needed = NULL;
			break;
		}
	}
	ask(keeper, &(struct task){.kind = TASK_OPEN,
			    .reason = SYNC_REASON_START,
			    .needed = needed,
			    .done = done,
			    .data = data});
}

static char *copy_or_null(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

void keeper_sync(struct keeper *keeper, const char *local_root, const struct sync_order *order,
	sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_SYNC,
			    .reason = order->reason,
			    .session = copy_or_null(order->session),
			    .name = copy_or_null(order->name),
			    .rollback = copy_or_null(order->rollback),
			    .local_root = copy_or_null(local_root),
			    .done = done,
			    .data = data});
}

void keeper_close(struct keeper *keeper, sandbox_done *done, void *data)
{
	ask(keeper, &(struct task){.kind = TASK_CLOSE,
			    .reason = SYNC_REASON_STOP,
			    .done = done,
			    .data = data});
}

static void on_session_saved(void *data, const struct error *err)
{
	if (err) {
		log_error("%s", err->text);
	}
}

void keeper_add_session(struct keeper *keeper, const char *session_id)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (!record_add_session(&keep->record, session_id)) {
			log_warning(
				"session %s is not written down: there are too many", session_id);
		}
		if (keep->record.state == RECORD_STARTING) {
			save(keep, RECORD_ACTIVE, on_session_saved);
		}
	}
}
