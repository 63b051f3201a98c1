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
 * The commands that work on what is kept of a workspace: checkpoints, conflicts and commits.
 * Straight, blocking code, without a loop, a spawner or an agent.
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
	bool is_terminal; // stdout
	int print_errno;  // of the first failure to print; 0: none
};

/*
 * Runs the command that the options name, and prints to stdout. `registry` is for the
 * configuration's checks. ERROR_CONFIG for what is wrong in the command line or the
 * configuration. A half-printed answer is possible on failure.
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
 * Takes the store's lock, waiting for a broker that syncs, up to sync-lock-timeout
 * (ERROR_TIMEOUT). Whoever changes the directory or the store's names has it.
 */
bool command_lock(struct command_context *context, struct error *err) ATTR_NODISCARD;
void command_unlock(struct command_context *context); // both

/*
 * With that lock: no broker's agent is at work in the workspace, and none begins.
 * ERROR_UNAVAILABLE where one is; what is about to end is waited for, up to pause-drain-timeout.
 */
bool command_lock_turns(struct command_context *context, struct error *err) ATTR_NODISCARD;

/* A snapshot of the workspace as it is now. The store is locked. */
bool command_snapshot(
	struct command_context *context, git_oid *out_tree, struct error *err) ATTR_NODISCARD;

/*
 * Prints text that others wrote, as it is; on a terminal what could drive it is spelled
 * (base/mask.h). `data` is the context.
 */
bool command_print(void *data, struct span text);

/* Prints the one JSON object whose members `write` writes. */
bool command_print_json(void (*write)(struct json_writer *writer, const void *data),
	const void *data, struct error *err) ATTR_NODISCARD;

enum { COMMAND_TIME_SIZE = 32 };
/* "2026-01-31 10:15:02", local time. Returns text. */
const char *command_time(char text[COMMAND_TIME_SIZE], long long seconds);

/* A path for a line of its own, quoted where it must be (base/path_quote.h). */
void command_print_path(const char *path);

#endif
