/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <string.h>

#include "sync/id.h"

/* Mass deletions: syncs that wait for the user's answer. */

/*
 * The sync of the running order has changed nothing. It is repeated with the answer. Until then the
 * order is set aside in the queue, so that nothing else waits for the user, and a sync that finds
 * the same deletions does not ask again.
 */
void keeper_ask(struct keep *keep, const struct deletions *deletions)
{
	struct keeper *keeper = keep->keeper;
	struct order *order = keeper->in_hand;
	struct keeper_event event = keeper_event_of(keep, order);
	bool is_known = keeper->has_answer && id_equal(&keeper->asked, &deletions->id);
	if (is_known || ++order->questions > KEEPER_QUESTIONS_MAX) {
		order->sync.asked = deletions->id;
		order->sync.deletions = is_known ? keeper->answer : SYNC_DELETIONS_KEEP;
		keeper_sync_keep(keep);
		return;
	}
	order->sync.deletions = SYNC_DELETIONS_ASK;
	order->sync.asked = deletions->id;
	order->is_aside = true;
	keeper_begin_next(keeper);
	if (!keeper->is_asking) {
		keeper->is_asking = true;
		keeper->has_answer = false;
		keeper->asked = deletions->id;
		keeper->config.listener->on_question(keeper->config.data, &event, deletions);
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
	/* Orders that were aside go on after the running one, before later ones. */
	LIST_FOR_EACH(order, &keeper->orders, struct order, link) {
		order->is_back = order->is_back || order->is_aside;
		if (order->is_aside && id_equal(&order->sync.asked, &keeper->asked)) {
			order->sync.deletions = keeper->answer;
		}
		order->is_aside = false;
	}
	if (!keeper->in_hand) {
		keeper_begin_next(keeper);
	}
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
