/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_KEEPER_IMPL_H
#define BROKER_LEDGER_KEEPER_IMPL_H

#include "base/list.h"
#include "base/soon.h"
#include "broker/ledger/keeper.h"
#include "broker/ledger/record_saver.h"

/*
 * What keeper.c (orders), keeper_ask.c (questions), keeper_roots.c (what is kept) and keeper_end.c
 * (the end of a sandbox) share; nobody else includes this.
 */

/* A root that is kept. */
struct keep {
	struct list link; // keeper.keeps
	struct keeper *keeper;
	struct record record;
	char **names; // owned; every name of it, here and there, as the sandbox has them
	struct workspace *workspace; // NULL where the mode is none
	char *store_folder;
	char name[SYNC_NAME_MAX / 2]; // of this sandbox in the store
	bool is_opened;               // its first sync went well, or is put off
	bool is_collected;            // by its last sync; else an earlier broker has, if at all
	bool was_active;              // before it was paused
	struct last_sync last;
	struct turn_lock turn;   // held while the agent has something under way
	bool has_told_transport; // in the log
	bool has_told_state;     // that was `told`
	enum record_state told;
};

struct keeper {
	struct keeper_config config;
	struct record_saver *saver;
	struct list keeps;     // of struct keep, oldest first
	struct list orders;    // of struct order: the queue of all that is to be done, oldest first
	struct order *in_hand; // the one of them that is being done; NULL: none
	struct list pausings;  // of struct pausing
	bool is_paused;
	bool is_closing;        // for the last time
	bool is_hurried;        // and that is urgent (keeper_hurry)
	struct list announced;  // of struct announced: what may become a root
	struct list announcing; // of struct announcing
	bool is_asking;         // about `asked`
	bool has_answer;        // to that, and nobody has acted on it yet
	enum sync_deletions answer;
	git_oid asked;
	struct soon start;       // begins the first order, once its caller has returned
	size_t root_count;       // of the sandbox's roots, that are kept
	struct naming *naming;   // of the others, while it runs; or NULL
	struct ending *ending;   // of the sandbox, while it runs; or NULL
	struct pruning *pruning; // of the stores, while it runs; or NULL
};

enum order_kind { ORDER_OPEN, ORDER_SYNC, ORDER_CLOSE, ORDER_DISCARD };

/* What the keeper is to do, and how far it is. */
struct order {
	struct list link; // keeper.orders
	enum order_kind kind;
	struct sync_order sync; // of the root in hand; the texts are owned
	bool asks;              // about mass deletions
	char **roots;           // owned; those meant; NULL: all
	bool has_prepared;      // the roots that are new are known
	struct keep *keep;      // the one in hand; NULL: none yet
	int questions;          // the same: those it waited for
	bool is_aside;          // it waits for keeper_decide, and others go on
	bool is_back;           // it was aside: the one in hand is synced again
	bool has_failed;
	struct error err; // the first
	sandbox_done *done;
	void *data;
};

/* ---- keeper.c ---- */

/* Writes the record down in this state. */
void keep_save(struct keep *keep, enum record_state state, record_saved *done);

/* Syncs the root as the order in hand says. */
void keeper_sync_keep(struct keep *keep);

struct keeper_event keeper_event_of(const struct keep *keep, const struct order *order);

/* Goes on with the order in hand, once the roots are known, or the sandbox has ended. */
void keeper_next(struct keeper *keeper);

/* The stores are pruned: the sandbox of the order in hand comes to its end. */
void keeper_pruned(struct keeper *keeper);

/* The next order that is not aside becomes the one in hand, and begins with a call of its own. */
void keeper_begin_next(struct keeper *keeper);
void keeper_end_order(struct keeper *keeper, const struct error *err);

/* The state of a root that is neither being opened nor being closed. */
enum record_state keeper_state_between(const struct keep *keep);

/* ---- keeper_pause.c ---- */

void keeper_drop_pausings(struct keeper *keeper);

/* ---- keeper_ask.c ---- */

/*
 * The sync of the order in hand has ended with a question, and has changed nothing: it is made
 * again with the answer.
 */
void keeper_ask(struct keep *keep, const struct deletions *deletions);

/* ---- keeper_roots.c ---- */

/*
 * Begins to keep what the sandbox has and is not kept yet; keeper_next follows. False: there is
 * nothing new, and nothing follows.
 */
bool keeper_add_roots(struct keeper *keeper);
void keeper_drop_naming(struct keeper *keeper);

void keep_destroy(struct keep *keep);
bool keep_is_named(const struct keep *keep, char *const *names);

/* Writes down in the record and in last what a sync did, or why it failed. */
void keep_note_sync(struct keep *keep, const struct order *order, const struct sync_result *result,
	const struct error *err);

/* A record of a directory here (its real path), "creating". */
void keeper_init_record(struct keeper *keeper, struct record *record, const char *local_root);
bool keeper_has_root(struct keeper *keeper, const char *real);

/* The record is saved: tells its state, where that is another than was told. */
void keep_tell_state(struct keep *keep);
void keeper_tell_state(struct keeper *keeper, const struct record *record, const char *previous);

/* ---- keeper_turn.c ---- */

/* Refuses a rollback of this directory while an agent of any broker is at work in it. */
struct rollback_guard *keeper_turn_guard(const struct keeper_config *config, const char *root);

/* ---- keeper_announce.c ---- */

/* The record of a root that was announced, owned by the caller; false: it was not. */
bool keeper_take_announced(struct keeper *keeper, const char *real, struct record *out_record);
void keeper_hurry_announcing(struct keeper *keeper); // no other broker's lock is waited for
void keeper_drop_announced(struct keeper *keeper);

/* ---- keeper_end.c ---- */

enum sandbox_fate { FATE_STAYS, FATE_RESTS, FATE_ENDS };

/*
 * What becomes of the sandbox once everything is here: a transient one ends, another one rests.
 * What was not synced is in the sandbox alone; one without roots holds nothing of ours.
 */
enum sandbox_fate keeper_fate(const struct keeper *keeper);

/* Sees to it, unless it stays. keeper_end_order. */
void keeper_end_sandbox(struct keeper *keeper, enum sandbox_fate fate);
void keeper_drop_ending(struct keeper *keeper);
void keeper_hurry_ending(struct keeper *keeper); // the sandbox's answer is not waited for

/*
 * Prunes the stores, where that was not done today; keeper_pruned follows. False: there is nothing
 * to prune, and nothing follows.
 */
bool keeper_prune(struct keeper *keeper);
void keeper_drop_pruning(struct keeper *keeper);

#endif
