/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LEDGER_KEEPER_H
#define BROKER_LEDGER_KEEPER_H

/*
 * This folder remembers, on disk, which sandboxes and workspaces exist and how far each of them is
 * synced, so that a later broker can finish what an earlier one began. It knows records, stores and
 * their locks, and orders syncs. It knows neither ACP nor the kind of provider. The folders from
 * broker/session on use it.
 */

#include <stdbool.h>

#include "broker/config/sync_settings.h"
#include "broker/ledger/record.h"
#include "broker/ledger/turn_lock.h"
#include "sync/workspace.h"

/* A sync of a workspace, and who asked for it. */
struct keeper_event {
	const char *local_root;
	enum sync_reason reason;
	const char *session; // as in the order; may be NULL
	const void *asker;   // the data of the order's done, to recognise the order
	bool is_put_off; // the sync has failed, but the root is open: the next sync asks the user
};

/* A record, and the last state of it that was reported; NULL: the record is new. */
struct keeper_state {
	const struct record *record;
	const char *previous;
};

enum { KEEPER_QUESTIONS_MAX = 3 }; // per sync of a root; after that the answer is no

struct keeper_listener {
	/* A sync of a workspace has ended with a result or an error. Called before its done. */
	void (*on_ended)(void *data, const struct keeper_event *event,
		const struct sync_result *result, const struct error *err);
	/*
	 * A sync that may ask has found deletions and has changed nothing: keeper_decide must
	 * follow, now or later. Meanwhile other orders go on. An order that finds the same
	 * deletions waits for the same answer; an order that finds other deletions waits for its
	 * own answer.
	 */
	void (*on_question)(
		void *data, const struct keeper_event *event, const struct deletions *deletions);
	/* A record's new state was saved. May be NULL. */
	void (*on_state)(void *data, const struct keeper_state *state);
};

/* All pointers are borrowed until the keeper is destroyed. */
struct keeper_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	const struct sync_settings *settings;
	const char *profile;
	const char *backend;
	const char *agent;        // its name; may be NULL
	const char *state_folder; // of records and stores
	const char *home;         // the user's; may be NULL
	int max_sessions;         // of the profile, in all running brokers; 0: any number
	int drain_timeout_ms;     // how long a rollback waits for work that is about to end
	const struct transport_tools *tools; // may be NULL
	const struct keeper_listener *listener;
	void *data;
};

/*
 * Syncs the workspaces of one sandbox, writes a record of each (broker/ledger/record.h), and lets
 * the sandbox go only with their receipts. Knows neither ACP nor the kind of provider.
 */
struct keeper;

struct keeper *keeper_create(const struct keeper_config *config);

/*
 * No callback follows. Changes that were not collected stay in the sandbox. If keeper_close has not
 * ended, the caller closes the sandbox before the next loop iteration. NULL is fine.
 */
void keeper_destroy(struct keeper *keeper);

/*
 * All of these call done exactly once, after they return; never if the keeper is destroyed first.
 * Open, sync, close and discard are orders: they wait in one queue and run one after the other,
 * root by root. The queue has no limit of its own: each order belongs to a waiting message, which
 * the desk counts, or to the end of the sandbox.
 */

/*
 * Lists of roots are NULL-terminated and copied. A root may be named by its path here or in the
 * sandbox. Two names of one directory here are one root.
 */

/*
 * Call it before these directories become roots of the sandbox, which takes steps that may be
 * interrupted. Writes a record in the state "creating" for each directory that has none yet. If
 * another broker has the store's lock, it waits up to lock_timeout_ms (ERROR_TIMEOUT), because that
 * broker syncs, or ends this very sandbox. False if there is nothing to wait for.
 */
bool keeper_announce(struct keeper *keeper, char *const *names, sandbox_done *done, void *data);

/* Call it if they did not become roots: writes the reason, `err`, into the announced records. */
void keeper_renounce(struct keeper *keeper, char *const *names, const struct error *err);

/*
 * Opens these roots: writes a record of each and syncs it for the first time (unless the mode is
 * none). A root whose first sync has failed is tried again. If the workspace was replaced by
 * another folder since the last sync (WORKSPACE_REPLACED), the root waits for a sync in which the
 * user says yes; that is not a failure.
 */
void keeper_open(struct keeper *keeper, char *const *roots, sandbox_done *done, void *data);

/*
 * Syncs these roots, or all opened ones (NULL). Tries all of them; done gets the first error.
 * Copies the strings.
 */
void keeper_sync(struct keeper *keeper, char *const *roots, const struct sync_order *order,
	sandbox_done *done, void *data);

/* The user's answer about deletions: whether to apply them. Does nothing if no question is open. */
void keeper_decide(struct keeper *keeper, bool follows);

/* The user's answer about changes that a sync of this directory has held: workspace_answer_held. */
void keeper_answer_held(struct keeper *keeper, const char *local_root, const git_oid *tree,
	char *const *paths, enum held_answer answer);

/*
 * The last order. Collects from every root of the sandbox and writes the receipts. Then it ends a
 * transient sandbox, and stops a kept one that can be stopped, if everything was collected and no
 * other running broker works in the sandbox. An error says what is left, and where. Once a day it
 * removes unused objects from the stores, in the background.
 */
void keeper_close(struct keeper *keeper, sandbox_done *done, void *data);
bool keeper_is_closing(const struct keeper *keeper); // keeper_close was called
bool keeper_is_ending(
	const struct keeper *keeper); // everything is collected, and the sandbox is ending

/*
 * Takes over a dead broker's record and its lock (record_lock). The next root added to the sandbox
 * must be the record's. Call it before anything else.
 */
void keeper_adopt(struct keeper *keeper, struct record *record, int lock_fd);

/* Like keeper_close, for the sandbox of a broker that did not end properly. */
void keeper_recover(struct keeper *keeper, sandbox_done *done, void *data);

/*
 * Ends the sandbox without collecting; its changes are lost. Fails, and does nothing, if another
 * running broker works in it.
 */
void keeper_discard(struct keeper *keeper, sandbox_done *done, void *data);

/*
 * Call it before the sandbox's processes are frozen or run again. Writes the state "paused", or the
 * earlier state, into the records, then calls done. Syncs are not affected. False if there is no
 * record to write; then done is not called.
 */
bool keeper_pause(
	struct keeper *keeper, bool is_paused, sandbox_done *done, void *data) ATTR_NODISCARD;

/*
 * Notes the agent's work in progress in all of its workspaces; NULL: none. Meanwhile a user's
 * rollback of one of them is refused (broker/ledger/turn_lock.h). Fails with ERROR_UNAVAILABLE and
 * the reason ROLLBACK_IN_PROGRESS while a rollback runs: then no work may begin. Does not block.
 */
bool keeper_note_turn(
	struct keeper *keeper, const struct turn_text *text, struct error *err) ATTR_NODISCARD;

/*
 * The end is urgent. From now on no sync waits for another broker's sync, and nothing waits until
 * the sandbox has stopped or ended: the next start does that (SHUTTING_DOWN).
 */
void keeper_hurry(struct keeper *keeper);

/* A session was opened in these roots (NULL: in all): writes it into their records. */
void keeper_add_session(struct keeper *keeper, char *const *roots, const char *session_id);

/* The same for the editor's choices in the session (a JSON array, or empty). */
void keeper_set_choices(struct keeper *keeper, const char *session_id, struct span choices);

/* The session was closed: removes it from the records, so that other brokers may open it. */
void keeper_remove_session(struct keeper *keeper, const char *session_id);

/* Calls done once everything noted so far is saved. */
void keeper_flush(struct keeper *keeper, sandbox_done *done, void *data);

/* Notes in the records that this broker is ending, so that other brokers wait for it. */
void keeper_note_end(struct keeper *keeper);

/* The result or the error of a root's last sync. */
struct last_sync {
	bool happened;
	enum sync_reason reason;
	char time[32];
	char error[ERROR_TEXT_MAX]; // "": no error
	long long duration_ms;
	size_t files, conflicts;
	struct merge_counts to_local, to_runtime;
	uint64_t sent_bytes, received_bytes;
	unsigned checkpoint;
};

/* The open root at this index; false after the last. Borrowed. */
struct kept {
	const char *id; // of the record
	const char *local_root, *runtime_root;
	const char *reference; // sandbox_reference; or NULL
	const char *state;
	const char *store_folder;
	bool is_synced;        // false if the mode is none
	const char *transport; // "git", "rsync", …; NULL before the first sync
	const struct last_sync *last;
};
bool keeper_at(const struct keeper *keeper, size_t index, struct kept *out_kept);

/* The open root with this name; false if none has it. */
bool keeper_find(const struct keeper *keeper, const char *root, struct kept *out_kept);

#endif
