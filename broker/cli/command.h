/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_COMMAND_H
#define BROKER_CLI_COMMAND_H

#include "base/json_writer.h"
#include "broker/config/config.h"
#include "broker/ledger/store_place.h"
#include "broker/ledger/turn_lock.h"
#include "providers/provider.h"
#include "sync/checkpoint.h"

/*
 * The commands that work on a workspace's store: checkpoints, conflicts and commits. Straight,
 * blocking code, without a loop, a spawner or an agent.
 */
struct command_context {
	const struct options *options;
	const char *home; // may be NULL
	const char *const *environment;
	struct config config;
	struct store_place place;
	struct store store;
	int lock_fd; // -1: not held
	struct turn_locks turns;
	const char *state_folder;
	bool is_terminal; // stdout is a terminal
	int print_errno;  // of the first failed print; 0: none
};

/*
 * Runs the command that the options name, and prints to stdout. The configuration is checked with
 * `registry`. ERROR_CONFIG for a mistake in the command line or the configuration. After a failure,
 * part of the output may have been printed.
 */
bool command_run(const struct options *options, const struct registry *registry,
	const char *const *environment, struct error *err) ATTR_NODISCARD;

/* ---- for the commands ---- */

typedef bool command_action(struct command_context *context, struct error *err);

command_action command_checkpoints_list, command_checkpoints_show, command_checkpoints_diff;
command_action command_checkpoints_rollback, command_checkpoints_restore;
command_action command_checkpoints_undelete;
command_action command_conflicts_list, command_conflicts_show, command_conflicts_take;
command_action command_conflicts_edit;
command_action command_commits_list, command_commits_take;

/*
 * Takes the store's lock. Waits up to sync-lock-timeout (ERROR_TIMEOUT) for a broker that is
 * syncing. Every command that changes the workspace or the store's references needs it.
 */
bool command_lock(struct command_context *context, struct error *err) ATTR_NODISCARD;
void command_unlock(
	struct command_context *context); // releases the store's lock and the turn locks

/*
 * With the store's lock held: makes sure that no broker's agent is working in the workspace, and
 * that none begins. Waits up to pause-drain-timeout for work that is about to end. Fails with
 * ERROR_UNAVAILABLE if an agent still works.
 */
bool command_lock_turns(struct command_context *context, struct error *err) ATTR_NODISCARD;

/* Takes a snapshot of the present workspace. The store is locked. */
bool command_snapshot(
	struct command_context *context, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * Prints text from other programs. On a terminal, control characters are shown as letters
 * (base/mask.h). `data` is the context.
 */
bool command_print(void *data, struct span text);

/* Prints one JSON object; `write` writes its members. */
bool command_print_json(void (*write)(struct json_writer *writer, const void *data),
	const void *data, struct error *err) ATTR_NODISCARD;

enum { COMMAND_TIME_SIZE = 32 };
/* "2026-01-31 10:15:02", local time. Returns text. */
const char *command_time(char text[COMMAND_TIME_SIZE], long long seconds);

/* Prints a path on a line of its own, quoted if necessary (base/path_quote.h). */
void command_print_path(const char *path);

#endif
