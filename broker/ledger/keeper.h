/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_KEEPER_H
#define BROKER_LEDGER_KEEPER_H

/*
 * This folder remembers, on disk, which sandboxes and workspaces there are and how far each of them
 * is synced, so that a broker that comes later can finish what another one began. It knows records,
 * stores and their locks, and orders syncs. It knows neither ACP nor which provider it works with.
 * The folders from broker/session on use it.
 */

#include <stdbool.h>

#include "broker/config/sync_settings.h"
#include "broker/ledger/record.h"
#include "broker/ledger/turn_lock.h"
#include "sync/workspace.h"

/* A sync of a workspace, and who wanted it. */
struct keeper_event {
	const char *local_root;
	enum sync_reason reason;
	const char *session; // as in the order; may be NULL
	const void *asker;   // the data that its done is raised with: to know it again
	bool is_put_off;     // it has failed, and counts as opened: the next sync asks the user
};

/* A record, and the state of it that was told before; NULL: it is new. */
struct keeper_state {
	const struct record *record;
	const char *previous;
};

enum { KEEPER_QUESTIONS_MAX = 3 }; // that one sync of a root waits for; then no is the answer

struct keeper_listener {
	/* A sync of a workspace has ended: the result, or the error. Before its done. */
	void (*on_ended)(void *data, const struct keeper_event *event,
		const struct sync_result *result, const struct error *err);
	/*
	 * A sync that was ordered to ask has found deletions, and has changed nothing:
	 * keeper_decide follows, now or later. Until then others go on; those that find
	 * deletions, too, wait for the same answer, or, where they are not the same, for one
	 * of their own.
	 */
	void (*on_question)(
		void *data, const struct keeper_event *event, const struct deletions *deletions);
	/* A record has another state, and that is written down. May be NULL. */
	void (*on_state)(void *data, const struct keeper_state *state);
};

/* Everything is borrowed until the keeper is destroyed. */
struct keeper_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	const struct sync_settings *settings;
	const char *profile;
	const char *backend;
	const char *agent;        // its name; may be NULL
	const char *state_folder; // there
	const char *home;         // the user's; may be NULL
	int max_sessions;         // of the profile, in all brokers that live; 0: any number
	int drain_timeout_ms;     // for what is about to end before a rollback
	const struct transport_tools *tools; // may be NULL
	const struct keeper_listener *listener;
	void *data;
};

/*
 * Keeps the workspaces of one sandbox: syncs them, writes a record of each
 * (broker/ledger/record.h), and lets the sandbox go only with their receipts. Knows neither
 * ACP nor which provider it is.
 */
struct keeper;

struct keeper *keeper_create(const struct keeper_config *config);

/*
 * Raises nothing more; what is not collected stays so. The sandbox is closed before the
 * loop turns again, where keeper_close has not ended. NULL is fine.
 */
void keeper_destroy(struct keeper *keeper);

/*
 * All of these raise done exactly once, unless the keeper is destroyed before, and never
 * before they return. Those that open, sync, close or discard are orders: they wait in one queue
 * and are done one after the other, root by root. The queue has no limit of its own: each order is
 * that of a message that waits, which the desk counts, or of the end of the sandbox.
 */

/*
 * Roots are named as the sandbox has them, by their names here or there, in
 * NULL-terminated lists that are copied. Two names of one directory here are one root.
 */

/*
 * These directories here are about to become roots of the sandbox, in steps that may be cut off: a
 * record of each that is not kept yet says "creating" before. Waits, up to lock_timeout_ms
 * (ERROR_TIMEOUT), for another broker that has the store's lock: it syncs, or ends the very
 * sandbox. False: there is nothing to wait for.
 */
bool keeper_announce(struct keeper *keeper, char *const *names, sandbox_done *done, void *data);

/* They became none, for this reason: the records of those that were announced say so. */
void keeper_renounce(struct keeper *keeper, char *const *names, const struct error *err);

/*
 * Begins to keep these roots: a record is written of each, and each is synced for the
 * first time (unless the mode is none). One whose first sync has failed is tried again; where it
 * is another folder than at the last sync (WORKSPACE_REPLACED), that waits for the user's yes to
 * a sync that asks, and is no failure.
 */
void keeper_open(struct keeper *keeper, char *const *roots, sandbox_done *done, void *data);

/*
 * Syncs these roots, or (NULL) all that were opened; the first error is told, after all were
 * tried. The texts are copied.
 */
void keeper_sync(struct keeper *keeper, char *const *roots, const struct sync_order *order,
	sandbox_done *done, void *data);

/* Whether the deletions that were asked about are followed. Asks none: does nothing. */
void keeper_decide(struct keeper *keeper, bool follows);

/* The user's answer about what a sync of this directory here has held: workspace_answer_held. */
void keeper_answer_held(struct keeper *keeper, const char *local_root, const git_oid *tree,
	char *const *paths, enum held_answer answer);

/*
 * The last thing: collects every root of the sandbox, writes the receipts, and ends the
 * sandbox where it is transient - or lets it rest, where it is kept and can -, everything was
 * collected and no other broker that lives works in it. An error says what is left where. Once a
 * day unused objects are removed from the stores, in the background.
 */
void keeper_close(struct keeper *keeper, sandbox_done *done, void *data);
bool keeper_is_closing(const struct keeper *keeper); // that was asked for
bool keeper_is_ending(const struct keeper *keeper);  // all is collected: the sandbox is being ended

/*
 * Of a broker that is gone: its record, and the lock of that (record_lock), are taken over; the
 * root that the record is of is added to the sandbox next. Before anything else.
 */
void keeper_adopt(struct keeper *keeper, struct record *record, int lock_fd);

/* The same as keeper_close, of what a broker left that did not come to its end. */
void keeper_recover(struct keeper *keeper, sandbox_done *done, void *data);

/*
 * Ends the sandbox without collecting anything: what is in it is lost. An error where
 * another broker that lives works in it; then nothing was done.
 */
void keeper_discard(struct keeper *keeper, sandbox_done *done, void *data);

/*
 * What runs in the sandbox is about to be frozen, or goes on: the records say so, "paused" until
 * then, and done is raised once they are written. Syncs go on as ever. False: there is no record
 * to write, and nothing follows.
 */
bool keeper_pause(
	struct keeper *keeper, bool is_paused, sandbox_done *done, void *data) ATTR_NODISCARD;

/*
 * What the agent has under way now, in any of its workspaces; NULL: nothing. Who would bring one of
 * them back by hand is refused meanwhile (broker/ledger/turn_lock.h). ERROR_UNAVAILABLE with reason
 * ROLLBACK_IN_PROGRESS where somebody is at that just now: nothing more may begin. Waits for
 * nothing.
 */
bool keeper_note_turn(
	struct keeper *keeper, const struct turn_text *text, struct error *err) ATTR_NODISCARD;

/*
 * The end is urgent: no sync waits for another broker's any more, and a stop or an end of the
 * sandbox that is under way, or comes later, is not waited for: it is left to the next start
 * (SHUTTING_DOWN).
 */
void keeper_hurry(struct keeper *keeper);

/* A session was opened in these roots (NULL: in all): it is written down. */
void keeper_add_session(struct keeper *keeper, char *const *roots, const char *session_id);

/* What the editor has chosen in it (an array of JSON, or empty): the same. */
void keeper_set_choices(struct keeper *keeper, const char *session_id, struct span choices);

/* It was closed: others may have it. */
void keeper_remove_session(struct keeper *keeper, const char *session_id);

/* Raises done once all that was to be written down until now is. */
void keeper_flush(struct keeper *keeper, sandbox_done *done, void *data);

/* The broker ends: others that look at the records see that, and wait. */
void keeper_note_end(struct keeper *keeper);

/* What the last sync of a root did, or why it failed. */
struct last_sync {
	bool happened;
	enum sync_reason reason;
	char time[32];
	char error[ERROR_TEXT_MAX]; // "": it went well
	long long duration_ms;
	size_t files, conflicts;
	struct merge_counts to_local, to_runtime;
	uint64_t sent_bytes, received_bytes;
	unsigned checkpoint;
};

/* The n-th root that is kept; false after the last. Borrowed. */
struct kept {
	const char *id; // of the record
	const char *local_root, *runtime_root;
	const char *state;
	const char *store_folder;
	bool is_synced;        // the mode is not none
	const char *transport; // "git", "rsync", …; NULL before the first sync
	const struct last_sync *last;
};
bool keeper_at(const struct keeper *keeper, size_t index, struct kept *out_kept);

/* The one that is called so; false where none is. */
bool keeper_find(const struct keeper *keeper, const char *root, struct kept *out_kept);

#endif
