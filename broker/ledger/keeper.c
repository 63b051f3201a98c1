/* SPDX-License-Identifier: MIT */
#include "broker/ledger/keeper_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/point.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "base/words.h"

enum { WHAT_MAX = 320 };

void keeper_begin_next(struct keeper *keeper)
{
	keeper->in_hand = NULL;
	LIST_FOR_EACH(order, &keeper->orders, struct order, link) {
		if (!order->is_aside) {
			keeper->in_hand = order;
			soon_start(&keeper->start);
			return;
		}
	}
}

/* ---- the end of an order ---- */

static void order_note_error(struct order *order, const struct error *err)
{
	if (!order->has_failed) {
		order->has_failed = true;
		order->err = *err;
	}
}

static void order_free(struct order *order)
{
	sync_order_finish(&order->sync);
	words_free(order->roots);
	free(order);
}

void keeper_end_order(struct keeper *keeper, const struct error *err)
{
	struct order *order = keeper->in_hand;
	if (err) {
		order_note_error(order, err);
	}
	list_remove(&order->link);
	keeper_begin_next(keeper);
	sandbox_done *done = order->done;
	void *data = order->data;
	struct error first = order->err;
	bool has_failed = order->has_failed;
	order_free(order);
	done(data, has_failed ? &first : NULL);
}

/* ---- records ---- */

void keep_save(struct keep *keep, enum record_state state, record_saved *done)
{
	char now[TIMESTAMP_SIZE];
	keep->record.state = state;
	text_whole(keep->record.updated, sizeof(keep->record.updated), "%s", timestamp_now(now));
	record_saver_save(keep->keeper->saver, &keep->record, done, keep);
}

static void on_saved_last(void *data, const struct error *err)
{
	struct keep *keep = data;
	point("keeper.done");
	if (err) {
		order_note_error(keep->keeper->in_hand, err);
	} else {
		keep_tell_state(keep);
	}
	keeper_next(keep->keeper);
}

/* ---- syncs ---- */

/*
 * The state of a root after a successful sync. If the sandbox will be destroyed or rest, the root
 * is "stopped" only after that; until then the receipt says that everything was collected.
 */
static enum record_state state_after(const struct order *order, const struct keep *keep)
{
	if (order->kind == ORDER_CLOSE) {
		return keeper_fate(keep->keeper) == FATE_STAYS ? RECORD_STOPPED : RECORD_COLLECTING;
	}
	return keeper_state_between(keep);
}

struct keeper_event keeper_event_of(const struct keep *keep, const struct order *order)
{
	return (struct keeper_event){.local_root = keep->record.local_root,
		.reason = order->sync.reason,
		.session = order->sync.session,
		.asker = order->data};
}

static workspace_sync_done on_synced;

void keeper_sync_keep(struct keep *keep)
{
	workspace_sync(keep->workspace, &keep->keeper->in_hand->sync, on_synced, keep);
}

/* Files that could not be fetched would be lost with the sandbox: then this is not a last sync. */
static bool is_whole(const struct keep *keep, const struct order *order,
	const struct sync_result *result, struct error *err)
{
	bool would_go = keep->keeper->config.settings->persistence == PERSISTENCE_TRANSIENT;
	char what[WHAT_MAX];
	if (order->kind != ORDER_CLOSE || !would_go ||
		(result->left == 0 && !result->commits_left)) {
		return true;
	}
	if (result->left > 0) {
		text_format(what, sizeof(what),
			"%zu of the files in the sandbox could not be fetched (the first: "
			"%s)",
			result->left, result->first_left);
	} else {
		snprintf(what, sizeof(what),
			"commits in the sandbox could not be fetched from there");
	}
	return error_set(err, ERROR_DENIED,
		"%s, and would be lost with it. They are in %s; acp-broker sessions discard %s "
		"gives them up",
		what, keep->record.runtime_root, keep->record.id);
}

/*
 * While a session is being opened, there is no session yet in which the user could be asked.
 * Nothing was changed: the sync before the first prompt asks instead.
 */
static bool is_put_off(const struct order *order, const struct error *err)
{
	return err && order->kind == ORDER_OPEN && error_has_reason(err, "WORKSPACE_REPLACED");
}

/*
 * The answer was used, so the next time the user is asked again; also if the answer was no and
 * ended the sync.
 */
static void forget_answer(struct keeper *keeper, const struct order *order, const struct error *err)
{
	bool is_done = !err || error_has_reason(err, "WORKSPACE_REPLACED");
	if (is_done && order->sync.deletions != SYNC_DELETIONS_ASK) {
		keeper->has_answer = false;
	}
}

static void on_synced(void *data, const struct sync_result *result, const struct error *err)
{
	struct keep *keep = data;
	struct keeper *keeper = keep->keeper;
	struct order *order = keeper->in_hand;
	const struct deletions *question = err ? workspace_question(keep->workspace) : NULL;
	point("keeper.synced");
	if (question) {
		keeper_ask(keep, question);
		return;
	}
	struct keeper_event event = keeper_event_of(keep, order);
	forget_answer(keeper, order, err);
	struct error partial;
	if (!err && !is_whole(keep, order, result, &partial)) {
		err = &partial;
	}
	event.is_put_off = is_put_off(order, err);
	keep_note_sync(keep, order, result, err);
	keeper->config.listener->on_ended(keeper->config.data, &event, result, err);
	if (err && !event.is_put_off) {
		order_note_error(order, err);
		/*
		 * A turn that could not be synced does not end the session: the next one tries
		 * again.
		 */
		keep_save(keep, order->kind == ORDER_SYNC ? keep->record.state : RECORD_FAILED,
			on_saved_last);
		return;
	}
	keep->is_opened = true;
	keep_save(keep, state_after(order, keep), on_saved_last);
}

static void on_saved_before(void *data, const struct error *err)
{
	struct keep *keep = data;
	point("keeper.saved");
	if (err) {
		order_note_error(keep->keeper->in_hand, err);
		keeper_next(keep->keeper);
		return;
	}
	keep_tell_state(keep);
	if (keep->workspace) {
		keeper_sync_keep(keep);
	} else {
		keep->is_opened = true;
		keep_save(keep, state_after(keep->keeper->in_hand, keep), on_saved_last);
	}
}

/* ---- the orders ---- */

void keeper_pruned(struct keeper *keeper)
{
	const struct order *order = keeper->in_hand;
	bool is_isolated = sandbox_capabilities(keeper->config.sandbox)->isolated;
	enum sandbox_fate fate = order->has_failed && is_isolated ? FATE_STAYS
	                         : order->kind == ORDER_DISCARD   ? FATE_ENDS
	                                                          : keeper_fate(keeper);
	if (fate == FATE_STAYS) {
		keeper_end_order(keeper, NULL);
	} else {
		keeper_end_sandbox(keeper, fate);
	}
}

static void close_sandbox(struct keeper *keeper)
{
	if (!keeper_prune(keeper)) {
		keeper_pruned(keeper);
	}
}

/* An earlier broker was about to destroy the sandbox: a part of it may be gone. */
static bool was_collected(const struct keep *keep)
{
	return keep->record.state == RECORD_COLLECTING && *keep->record.receipt.runtime_tree;
}

static bool concerns(const struct order *order, const struct keep *keep)
{
	if (order->roots && !keep_is_named(keep, order->roots)) {
		return false;
	}
	if (order->kind == ORDER_SYNC) {
		return keep->workspace && (keep->is_opened || order->roots);
	}
	if (order->kind == ORDER_DISCARD) {
		return false;
	}
	return (order->kind == ORDER_CLOSE &&
		       !(order->sync.reason == SYNC_REASON_CRASH && was_collected(keep))) ||
	       (order->kind == ORDER_OPEN && !keep->is_opened);
}

/* A name that is not a root of the sandbox must not count as synced. */
static void check_names(struct keeper *keeper)
{
	struct error err;
	struct order *order = keeper->in_hand;
	bool is_known = !order->roots || !order->roots[0];
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		is_known = is_known || keep_is_named(keep, order->roots);
	}
	if (!is_known) {
		error_set(&err, ERROR_NOT_FOUND, "syncing %s: it is not a root of the sandbox",
			order->roots[0]);
		order_note_error(order, &err);
	}
}

/* If the sandbox has the workspace itself and no checkpoints are kept, there is only its end. */
static bool has_roots(const struct keeper *keeper)
{
	return sandbox_capabilities(keeper->config.sandbox)->isolated ||
	       keeper->config.settings->keeps_plain;
}

/* Goes on to the next root; after the last one the order ends. */
void keeper_next(struct keeper *keeper)
{
	struct order *order = keeper->in_hand;
	if (!order->has_prepared && order->kind != ORDER_SYNC) {
		order->has_prepared = true;
		if (has_roots(keeper) && keeper_add_roots(keeper)) {
			return;
		}
	}
	struct list *next = order->keep ? order->keep->link.next : keeper->keeps.next;
	while (next != &keeper->keeps && !concerns(order, LIST_ENTRY(next, struct keep, link))) {
		next = next->next;
	}
	if (next == &keeper->keeps) {
		check_names(keeper);
		if (order->kind == ORDER_CLOSE || order->kind == ORDER_DISCARD) {
			close_sandbox(keeper);
		} else {
			keeper_end_order(keeper, NULL);
		}
		return;
	}
	order->keep = LIST_ENTRY(next, struct keep, link);
	order->sync.deletions = order->asks ? SYNC_DELETIONS_ASK : SYNC_DELETIONS_KEEP;
	order->questions = 0;
	if (order->kind == ORDER_SYNC) {
		keeper_sync_keep(order->keep);
	} else {
		order->keep->record.receipt = (struct record_receipt){0}; // of earlier changes
		keep_save(order->keep,
			order->kind == ORDER_OPEN ? RECORD_SYNCING : RECORD_COLLECTING,
			on_saved_before);
	}
}

static void on_start(struct soon *soon)
{
	struct keeper *keeper = CONTAINER_OF(soon, struct keeper, start);
	struct order *order = keeper->in_hand;
	if (order->is_back) {
		order->is_back = false;
		keeper_sync_keep(order->keep);
	} else {
		keeper_next(keeper);
	}
}

static void add(struct keeper *keeper, const struct order *wanted)
{
	struct order *order = mem_alloc_zero(sizeof(*order));
	*order = *wanted;
	list_append(&keeper->orders, &order->link);
	if (!keeper->in_hand) {
		keeper_begin_next(keeper);
	}
}

/* ---- public functions ---- */

struct keeper *keeper_create(const struct keeper_config *config)
{
	struct keeper *keeper = mem_alloc_zero(sizeof(*keeper));
	keeper->config = *config;
	keeper->saver = record_saver_create(config->loop, config->pool, config->state_folder);
	list_init(&keeper->keeps);
	list_init(&keeper->orders);
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
	keeper_drop_pruning(keeper);
	keeper_drop_announced(keeper);
	LIST_FOR_EACH(order, &keeper->orders, struct order, link) {
		list_remove(&order->link);
		order_free(order);
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
	add(keeper, &(struct order){.kind = ORDER_OPEN,
			    .sync.reason = SYNC_REASON_START,
			    .roots = copy_or_null(roots),
			    .done = done,
			    .data = data});
}

void keeper_sync(struct keeper *keeper, char *const *roots, const struct sync_order *sync,
	sandbox_done *done, void *data)
{
	add(keeper, &(struct order){.kind = ORDER_SYNC,
			    .sync = sync_order_copy(sync),
			    .asks = sync->deletions == SYNC_DELETIONS_ASK,
			    .roots = copy_or_null(roots),
			    .done = done,
			    .data = data});
}

void keeper_close(struct keeper *keeper, sandbox_done *done, void *data)
{
	keeper->is_closing = true;
	keeper_hurry_announcing(keeper);
	add(keeper, &(struct order){.kind = ORDER_CLOSE,
			    .sync.reason = SYNC_REASON_STOP,
			    .done = done,
			    .data = data});
}

bool keeper_is_closing(const struct keeper *keeper)
{
	return keeper->is_closing;
}

bool keeper_is_ending(const struct keeper *keeper)
{
	return keeper->ending != NULL;
}

void keeper_recover(struct keeper *keeper, sandbox_done *done, void *data)
{
	add(keeper, &(struct order){.kind = ORDER_CLOSE,
			    .sync.reason = SYNC_REASON_CRASH,
			    .done = done,
			    .data = data});
}

void keeper_discard(struct keeper *keeper, sandbox_done *done, void *data)
{
	add(keeper, &(struct order){.kind = ORDER_DISCARD, .done = done, .data = data});
}

void keeper_hurry(struct keeper *keeper)
{
	keeper_hurry_announcing(keeper);
	keeper_hurry_ending(keeper);
	LIST_FOR_EACH(keep, &keeper->keeps, struct keep, link) {
		if (keep->workspace) {
			workspace_hurry(keep->workspace);
		}
	}
}
