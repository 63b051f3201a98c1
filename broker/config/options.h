/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CONFIG_OPTIONS_H
#define BROKER_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/error.h"

/*
 * acp-broker [OPTION...] [COMMAND [WORD...]] [-- AGENT [ARG...]]. All strings are borrowed from
 * argv. A command of two words ("checkpoints list") works on the store of a workspace and runs no
 * agent.
 */
enum command {
	COMMAND_RUN,
	COMMAND_CHECK,
	COMMAND_EXEC,
	COMMAND_CHAT,
	COMMAND_DOCTOR,
	COMMAND_AGENTS,
	COMMAND_INIT,
	COMMAND_TEST_PROVIDER,
	COMMAND_POLICY_EXPLAIN,
	COMMAND_POLICY_LIST,
	COMMAND_POLICY_FORGET,
	COMMAND_CHECKPOINTS_LIST,
	COMMAND_CHECKPOINTS_SHOW,
	COMMAND_CHECKPOINTS_DIFF,
	COMMAND_CHECKPOINTS_ROLLBACK,
	COMMAND_CHECKPOINTS_RESTORE,
	COMMAND_CHECKPOINTS_UNDELETE,
	COMMAND_CONFLICTS_LIST,
	COMMAND_CONFLICTS_SHOW,
	COMMAND_CONFLICTS_TAKE,
	COMMAND_CONFLICTS_EDIT,
	COMMAND_COMMITS_LIST,
	COMMAND_COMMITS_TAKE,
	COMMAND_STATUS,
	COMMAND_SESSIONS_LIST,
	COMMAND_SESSIONS_SHOW,
	COMMAND_SESSIONS_PRUNE,
	COMMAND_SESSIONS_COLLECT,
	COMMAND_SESSIONS_STOP,
	COMMAND_SESSIONS_DISCARD,
	COMMAND_SANDBOXES_LIST,
	COMMAND_SANDBOXES_STOP,
	COMMAND_SANDBOXES_DELETE,
	COMMAND_DU,
	COMMAND_PRUNE,
	COMMAND_HELP,
	COMMAND_VERSION,
	COMMAND_HEIR, // no word of a user; broker/cli/heir.h
	COMMAND_COUNT,
};

enum { OPTIONS_WORDS_MAX = 1024 };

/* Options that only some commands take. */
enum option_flag {
	OPTION_JSON = 1 << 0,
	OPTION_STAT = 1 << 1,
	OPTION_LOCAL = 1 << 2,
	OPTION_RUNTIME = 1 << 3,
	OPTION_DISCARD = 1 << 4,
	OPTION_UNDO = 1 << 5,
	OPTION_OLDER = 1 << 6,
	OPTION_MAX_SIZE = 1 << 7,
	OPTION_DRY_RUN = 1 << 8,
	OPTION_INTO = 1 << 9,
	OPTION_PROFILE = 1 << 10,
	OPTION_WORKSPACE = 1 << 11,
	OPTION_TOOLHOST = 1 << 12,
	OPTION_TRACE = 1 << 13,
	OPTION_APPROVE = 1 << 14,
	OPTION_FORMAT = 1 << 15,
	OPTION_CONFINE = 1 << 16,
	OPTION_WATCH = 1 << 17,
	OPTION_AGENT = 1 << 18,
	OPTION_RESUME = 1 << 19,
	OPTION_PLACE = 1 << 20,
	OPTION_HOST = 1 << 21,
	OPTION_EDITOR = 1 << 22,
	OPTION_YES = 1 << 23,
	OPTION_CONTAINER = 1 << 24,
};

struct options {
	enum command command;
	const char *profile;           // --profile NAME; NULL: the configuration's
	const char *workspace;         // --workspace DIR; NULL: the editor's cwd
	const char *config;            // --config FILE
	const char *trace;             // --trace FILE
	const char *log_level;         // --log-level LEVEL
	const char *log_format;        // --log-format FORMAT
	const char *toolhost;          // --toolhost MODE
	const char *agent;             // --agent NAME; NULL: the configuration's
	const char *container;         // --container IMAGE; NULL: what the profile says
	const char *approve;           // --approve WHAT; NULL: the policy's own mode
	const char *format;            // --format FORMAT
	const char *place;             // --place PLACE
	const char *host;              // --host NAME
	const char *editor;            // --editor EDITOR
	const char *into;              // --into DIR
	const char *older;             // --older AGE
	const char *max_size;          // --max-size SIZE
	const char *const *agent_argv; // NULL-terminated words after "--", or NULL
	unsigned flags;                // of enum option_flag
	const char *topic;             // for COMMAND_HELP: a command or a group; NULL: everything
	const char *words[OPTIONS_WORDS_MAX]; // the words after the command
	size_t word_count;                    // the table bounds it for each command
};

/* Whether the command works on a workspace's store, without an agent. */
bool options_is_for_store(const struct options *options);

/*
 * Whether the command reads the records of sessions; and whether it acts on the sessions that they
 * belong to.
 */
bool options_is_for_records(const struct options *options);
bool options_is_for_sessions(const struct options *options);

/* Whether the command concerns everything that the broker keeps on disk. */
bool options_is_for_disk(const struct options *options);

/* Whether the command shows or changes what an agent may do. */
bool options_is_for_policy(const struct options *options);

/* Whether the command concerns sandboxes that providers have made. */
bool options_is_for_sandboxes(const struct options *options);

/* Whether the command runs an agent, or would run one. */
bool options_has_agent(const struct options *options);

/* Reads argv. A mistake is ERROR_CONFIG with one line that says what was expected. */
bool options_parse(
	struct options *options, int argc, char *const *argv, struct error *err) ATTR_NODISCARD;

/*
 * Prints to stdout, in at most 80 columns: all commands and options, or those of one topic
 * (options.topic).
 */
void options_print_help(const char *topic);
void options_print_version(void);

/* The option or command ("checkpoints list") at this index of the tables; NULL after the last. */
const char *options_option_name(size_t index);
const char *options_command_name(size_t index);

#endif
