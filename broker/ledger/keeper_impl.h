/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_KEEPER_IMPL_H
#define BROKER_LEDGER_KEEPER_IMPL_H

#include "base/list.h"
#include "base/soon.h"
#include "broker/ledger/keeper.h"
#include "broker/ledger/record_saver.h"

/*
 * Shared by keeper.c (orders), keeper_ask.c (questions), keeper_roots.c (roots) and keeper_end.c
 * (the end of a sandbox); nobody else includes this.
 */

/* A root of the sandbox and its record. */
struct keep {
	struct list link; // keeper.keeps
	struct keeper *keeper;
	struct record record;
	char **names;                // owned; all its paths, here and in the sandbox
	struct workspace *workspace; // NULL if the mode is none
	char *store_folder;
	char name[SYNC_NAME_MAX / 2]; // the store's name for this sandbox
	bool is_opened;               // its first sync went well, or is put off
	bool is_collected; // by the last sync here; if false, an earlier broker may have done it
	bool was_active;   // before the pause
	struct last_sync last;
	struct turn_lock turn;   // held while the agent has work in progress
	bool has_told_transport; // the transport was logged
	bool has_told_state;     // `told` was reported
	enum record_state told;
};

struct keeper {
	struct keeper_config config;
	struct record_saver *saver;
	struct list keeps;     // of struct keep, oldest first
	struct list orders;    // of struct order: the queue, oldest first
	struct order *in_hand; // the order that is running; NULL: none
	struct list pausings;  // of struct pausing
	bool is_paused;
	bool is_closing;        // keeper_close was called
	bool is_hurried;        // keeper_hurry was called
	struct list announced;  // of struct announced: directories that may become roots
	struct list announcing; // of struct announcing
	bool is_asking;         // a question about `asked` is open
	bool has_answer;        // it has an answer that no order has used yet
	enum sync_deletions answer;
	git_oid asked;
	struct soon start;       // starts the first order after its caller has returned
	size_t root_count;       // of the sandbox's roots that have a struct keep
	struct naming *naming;   // of the other roots, while it runs; or NULL
	struct ending *ending;   // of the sandbox, while it runs; or NULL
	struct pruning *pruning; // of the stores, while it runs; or NULL
};

enum order_kind { ORDER_OPEN, ORDER_SYNC, ORDER_CLOSE, ORDER_DISCARD };

/* One order to the keeper, and its progress. */
struct order {
	struct list link; // keeper.orders
	enum order_kind kind;
	struct sync_order sync; // for the current root; owns the strings
	bool asks;              // may ask about mass deletions
	char **roots;           // owned; the roots meant; NULL: all
	bool has_prepared;      // new roots have been added
	struct keep *keep;      // the current root; NULL: none yet
	int questions;          // questions that the current root waited for
	bool is_aside;          // waits for keeper_decide, while other orders go on
	bool is_back;           // it has waited: its current root is synced again
	bool has_failed;
	struct error err; // the first error
	sandbox_done *done;
	void *data;
};

/* ---- keeper.c ---- */

/* Saves the record in this state. */
void keep_save(struct keep *keep, enum record_state state, record_saved *done);

/* Syncs the root as the running order says. */
void keeper_sync_keep(struct keep *keep);

struct keeper_event keeper_event_of(const struct keep *keep, const struct order *order);

/* Continues the running order once the roots are known, or the sandbox has ended. */
void keeper_next(struct keeper *keeper);

/* The stores are pruned: the running order goes on to end the sandbox. */
void keeper_pruned(struct keeper *keeper);

/* Starts the next order that does not wait for an answer, from a callback of its own. */
void keeper_begin_next(struct keeper *keeper);
void keeper_end_order(struct keeper *keeper, const struct error *err);

/* The state of a root that is neither being opened nor being closed. */
enum record_state keeper_state_between(const struct keep *keep);

/* ---- keeper_pause.c ---- */

void keeper_drop_pausings(struct keeper *keeper);

/* ---- keeper_ask.c ---- */

/*
 * The sync of the running order has ended with a question and has changed nothing. It is repeated
 * with the answer.
 */
void keeper_ask(struct keep *keep, const struct deletions *deletions);

/* ---- keeper_roots.c ---- */

/*
 * Adds those roots of the sandbox that have no struct keep yet; keeper_next follows. False if there
 * is nothing new; then nothing follows.
 */
bool keeper_add_roots(struct keeper *keeper);
void keeper_drop_naming(struct keeper *keeper);

void keep_destroy(struct keep *keep);
bool keep_is_named(const struct keep *keep, char *const *names);

/* Notes in the record and in `last` what a sync did, or why it failed. */
void keep_note_sync(struct keep *keep, const struct order *order, const struct sync_result *result,
	const struct error *err);

/* Fills a record of a directory here (its real path), in the state "creating". */
void keeper_init_record(struct keeper *keeper, struct record *record, const char *local_root);
bool keeper_has_root(struct keeper *keeper, const char *real);

/* The record was saved: reports its state if it differs from the last reported one. */
void keep_tell_state(struct keep *keep);
void keeper_tell_state(struct keeper *keeper, const struct record *record, const char *previous);

/* ---- keeper_turn.c ---- */

/* Refuses a rollback of this directory while an agent of any broker works in it. */
struct rollback_guard *keeper_turn_guard(const struct keeper_config *config, const char *root);

/* ---- keeper_announce.c ---- */

/* The record of an announced root; the caller owns it. False if it was not announced. */
bool keeper_take_announced(struct keeper *keeper, const char *real, struct record *out_record);
void keeper_hurry_announcing(struct keeper *keeper); // no longer waits for another broker's lock
void keeper_drop_announced(struct keeper *keeper);

/* ---- keeper_end.c ---- */

enum sandbox_fate { FATE_STAYS, FATE_RESTS, FATE_ENDS };

/*
 * What to do with the sandbox once everything is collected: a transient one ends, another one
 * rests. If a change was not synced, it exists only in the sandbox, so the sandbox stays. A sandbox
 * without roots has nothing of ours.
 */
enum sandbox_fate keeper_fate(const struct keeper *keeper);

/* Carries that out, unless the sandbox stays; then calls keeper_end_order. */
void keeper_end_sandbox(struct keeper *keeper, enum sandbox_fate fate);
void keeper_drop_ending(struct keeper *keeper);
void keeper_hurry_ending(struct keeper *keeper); // does not wait for the sandbox's answer

/*
 * Prunes the stores that were not pruned today; keeper_pruned follows. False if there is nothing to
 * prune; then nothing follows.
 */
bool keeper_prune(struct keeper *keeper);
void keeper_drop_pruning(struct keeper *keeper);

#endif
