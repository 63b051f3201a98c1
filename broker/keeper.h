/* SPDX-License-Identifier: MIT */
#ifndef BROKER_KEEPER_H
#define BROKER_KEEPER_H

#include <stdbool.h>

#include "sync/workspace.h"

/*
 * Keeps the workspaces of one sandbox: syncs them, writes a record of each
 * (broker/record.h), and lets the sandbox go only with their receipts. Knows neither
 * ACP nor which provider it is.
 */
enum sync_mode { SYNC_MODE_NONE, SYNC_MODE_SESSION, SYNC_MODE_TURN };
enum persistence { PERSISTENCE_TRANSIENT, PERSISTENCE_REUSE };

const char *sync_mode_name(enum sync_mode mode); // "none", …

/* What a profile says of it. */
struct keeper_settings {
	enum sync_mode mode;
	enum persistence persistence;
	bool keeps_plain;          // checkpoints where the agent works in the workspace itself
	char **include, **exclude; // NULL-terminated pathspecs; may be NULL
	struct snapshot_limits limits;
	uint64_t big_file_bytes;
	int timeout_ms;      // a transfer without progress
	int lock_timeout_ms; // another broker's sync
	int max_checkpoints;
	long long checkpoint_age_ms; // 0: kept for any time
};

/* A sync of a workspace, and who wanted it. */
struct keeper_event {
	const char *local_root;
	enum sync_reason reason;
	const char *session; // as in the order; may be NULL
	const void *asker;   // the data that its done is raised with: to know it again
};

struct keeper_listener {
	/* A sync of a workspace has ended: the result, or the error. Before its done. */
	void (*on_ended)(void *data, const struct keeper_event *event,
		const struct sync_result *result, const struct error *err);
};

/* Everything is borrowed until the keeper is destroyed. */
struct keeper_config {
	struct ev_loop *loop;
	struct pool *pool;
	struct sandbox *sandbox;
	const struct keeper_settings *settings;
	const char *profile;
	const char *backend;
	const char *state_folder; // there
	const char *home;         // the user's; may be NULL
	const struct keeper_listener *listener;
	void *data;
};

struct keeper;

struct keeper *keeper_create(const struct keeper_config *config);

/* Raises nothing more; what is not collected stays so. NULL is fine. */
void keeper_destroy(struct keeper *keeper);

/*
 * All of these raise done exactly once, unless the keeper is destroyed before, and never
 * before they return. They are done in their order.
 */

/*
 * Begins to keep every root that the sandbox has by now: a record is written of
 * each, and each is synced for the first time (unless the mode is none). One whose first
 * sync has failed is tried again where it is one of local_roots (NULL-terminated), those that
 * are needed now.
 */
void keeper_open(struct keeper *keeper, char *const *local_roots, sandbox_done *done, void *data);

/*
 * Syncs the root that is called so here, or (NULL) all that are kept; the first error is
 * told, after all were tried. The texts are copied.
 */
void keeper_sync(struct keeper *keeper, const char *local_root, const struct sync_order *order,
	sandbox_done *done, void *data);

/*
 * The last thing: collects, writes the receipts, and ends the sandbox where it is
 * transient and everything was collected. An error says what is left where.
 */
void keeper_close(struct keeper *keeper, sandbox_done *done, void *data);

/* A session was opened in the roots: it is written down. */
void keeper_add_session(struct keeper *keeper, const char *session_id);

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
	bool is_synced; // the mode is not none
	const struct last_sync *last;
};
bool keeper_at(const struct keeper *keeper, size_t index, struct kept *out_kept);

#endif
