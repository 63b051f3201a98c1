/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <string.h>

#include "sync/id.h"

/* Mass deletions: the syncs that wait for what the user says of them. */

/* The task in hand becomes one that waits for the user. */
static void put_aside(struct keeper *keeper, struct task *task)
{
	list_remove(&task->link);
	list_append(&keeper->aside, &task->link);
	if (!list_is_empty(&keeper->tasks)) {
		soon_start(&keeper->start);
	}
}

/*
 * The sync of the task in hand has changed nothing. It is made again with the answer; until then
 * it is aside, so that nothing else waits for a user, and who finds the same is asked nothing.
 */
void keeper_ask(struct keep *keep, const struct deletions *deletions)
{
	struct keeper *keeper = keep->keeper;
	struct task *task = keeper_task(keeper);
	struct keeper_event event = keeper_event_of(keep, task);
	bool is_known = keeper->has_answer && id_equal(&keeper->asked, &deletions->id);
	if (is_known || ++task->questions > KEEPER_QUESTIONS_MAX) {
		task->asked = deletions->id;
		task->deletions = is_known ? keeper->answer : SYNC_DELETIONS_KEEP;
		keeper_sync_keep(keep);
		return;
	}
	task->deletions = SYNC_DELETIONS_ASK;
	task->asked = deletions->id;
	put_aside(keeper, task);
	if (!keeper->is_asking) {
		keeper->is_asking = true;
		keeper->has_answer = false;
		keeper->asked = deletions->id;
		keeper->config.listener->on_question(keeper->config.data, &event, deletions);
	}
}

/* What is aside goes on behind the task in hand, before those that came later. */
static void take_back(struct keeper *keeper)
{
	struct task *first = keeper_task(keeper);
	if (!first) {
		list_move_all(&keeper->tasks, &keeper->aside);
		soon_start(&keeper->start);
		return;
	}
	while (!list_is_empty(&keeper->aside)) {
		struct list *last = keeper->aside.prev;
		list_remove(last);
		list_insert_between(&first->link, last, first->link.next);
	}
}

void keeper_decide(struct keeper *keeper, bool follows)
{
	if (!keeper->is_asking) {
		return;
	}
	keeper->is_asking = false;
	keeper->has_answer = true;
	keeper->answer = follows ? SYNC_DELETIONS_FOLLOW : SYNC_DELETIONS_KEEP;
	LIST_FOR_EACH(task, &keeper->aside, struct task, link) {
		task->is_back = true;
		if (id_equal(&task->asked, &keeper->asked)) {
			task->deletions = keeper->answer;
		}
	}
	take_back(keeper);
}

void keeper_answer_held(struct keeper *keeper, const char *local_root, const git_oid *tree,
	char *const *paths, enum held_answer answer)
{
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (keep->workspace && strcmp(keep->record.local_root, local_root) == 0) {
			workspace_answer_held(keep->workspace, tree, paths, answer);
		}
	}
}
