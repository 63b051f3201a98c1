/* SPDX-License-Identifier: MIT */
#include "broker/config/options_tables.h"

#include <string.h>

const struct option option_table[OPTION_TABLE_LENGTH] = {
	{"--profile", 0, "NAME", offsetof(struct options, profile), COMMAND_RUN, OPTION_PROFILE,
		"use [profile \"NAME\"] of the configuration"},
	{"--agent", 0, "NAME", offsetof(struct options, agent), COMMAND_RUN, OPTION_AGENT,
		"start a known agent, or [agent \"NAME\"]"},
	{"--workspace", 0, "DIR", offsetof(struct options, workspace), COMMAND_RUN,
		OPTION_WORKSPACE, "work in DIR, not in the editor's directory"},
	{"--config", 0, "FILE", offsetof(struct options, config), COMMAND_RUN, 0,
		"read FILE, not $XDG_CONFIG_HOME/acp-broker/config"},
	{"--toolhost", 0, "MODE", offsetof(struct options, toolhost), COMMAND_RUN, OPTION_TOOLHOST,
		"who serves files and terminals: auto, editor, broker"},
	{"--approve", 0, "WHAT", offsetof(struct options, approve), COMMAND_RUN, OPTION_APPROVE,
		"where no rule decides, allow none, reads or all"},
	{"--confine", 0, NULL, 0, COMMAND_RUN, OPTION_CONFINE,
		"run the agent confined, in a copy, or not at all"},
	{"--container", 0, "IMAGE", offsetof(struct options, container), COMMAND_RUN,
		OPTION_CONTAINER, "run the agent in a container of IMAGE"},
	{"--trace", 0, "FILE", offsetof(struct options, trace), COMMAND_RUN, OPTION_TRACE,
		"write every message of every hop to FILE"},
	{"--log-level", 0, "LEVEL", offsetof(struct options, log_level), COMMAND_RUN, 0,
		"log error, warning, info or debug"},
	{"--log-format", 0, "FORMAT", offsetof(struct options, log_format), COMMAND_RUN, 0,
		"log text, or json: one object per line"},
	{"--format", 0, "FORMAT", offsetof(struct options, format), COMMAND_RUN, OPTION_FORMAT,
		"print text, or json: one object per line"},
	{"--resume", 0, NULL, 0, COMMAND_RUN, OPTION_RESUME,
		"continue session ID, or the latest one here"},
	{"--place", 0, "PLACE", offsetof(struct options, place), COMMAND_RUN, OPTION_PLACE,
		"where it works: here, confined, copy, host, cloud"},
	{"--host", 0, "NAME", offsetof(struct options, host), COMMAND_RUN, OPTION_HOST,
		"the host for --place host"},
	{"--editor", 0, "EDITOR", offsetof(struct options, editor), COMMAND_RUN, OPTION_EDITOR,
		"also add the agent to zed or jetbrains; none"},
	{"--yes", 0, NULL, 0, COMMAND_RUN, OPTION_YES, "ask nothing, use the defaults"},
	{"--json", 0, NULL, 0, COMMAND_RUN, OPTION_JSON, "print JSON"},
	{"--watch", 0, NULL, 0, COMMAND_RUN, OPTION_WATCH, "keep running and print changes"},
	{"--stat", 0, NULL, 0, COMMAND_RUN, OPTION_STAT,
		"print only how much changed in each file"},
	{"--local", 0, NULL, 0, COMMAND_RUN, OPTION_LOCAL, "print your version, byte for byte"},
	{"--runtime", 0, NULL, 0, COMMAND_RUN, OPTION_RUNTIME,
		"print the sandbox's version, byte for byte"},
	{"--undo", 0, NULL, 0, COMMAND_RUN, OPTION_UNDO, "undo the last \"commits take\""},
	{"--into", 0, "DIR", offsetof(struct options, into), COMMAND_RUN, OPTION_INTO,
		"collect into DIR, if the workspace is gone"},
	{"--older", 0, "AGE", offsetof(struct options, older), COMMAND_RUN, OPTION_OLDER,
		"only what was unused for AGE, such as 30d"},
	{"--max-size", 0, "SIZE", offsetof(struct options, max_size), COMMAND_RUN, OPTION_MAX_SIZE,
		"until copies and stores take SIZE, such as 20g"},
	{"--dry-run", 0, NULL, 0, COMMAND_RUN, OPTION_DRY_RUN,
		"print what would be done, do nothing"},
	{"--discard", 0, NULL, 0, COMMAND_RUN, OPTION_DISCARD,
		"even with edits that were not collected"},
	{"--help", 'h', NULL, 0, COMMAND_HELP, 0, "print help and exit"},
	{"--version", 'V', NULL, 0, COMMAND_VERSION, 0, "print the version and exit"},
};

/* These commands need the workspace, and the profile's rules for reading it. */
enum { STORE_FLAGS = OPTION_PROFILE | OPTION_WORKSPACE };

const struct command_row command_table[COMMAND_TABLE_LENGTH] = {
	{NULL, "check", "", 0, 0, COMMAND_CHECK, OPTION_JSON | SESSION_FLAGS,
		"print the effective configuration"},
	{NULL, "exec", " PROMPT|-", 1, 1, COMMAND_EXEC, SESSION_FLAGS | OPTION_FORMAT,
		"run one prompt and print the answer"},
	{NULL, "chat", " [--resume [ID]]", 0, 1, COMMAND_CHAT, SESSION_FLAGS | OPTION_RESUME,
		"talk with an agent in the terminal"},
	{NULL, "doctor", "", 0, 0, COMMAND_DOCTOR, OPTION_JSON | SESSION_FLAGS,
		"test what a session does, step by step"},
	{NULL, "agents", "", 0, 0, COMMAND_AGENTS, OPTION_JSON, "list the agents known by name"},
	{NULL, "init", "", 0, 0, COMMAND_INIT,
		OPTION_AGENT | OPTION_PROFILE | OPTION_PLACE | OPTION_HOST | OPTION_EDITOR |
			OPTION_YES | OPTION_DRY_RUN,
		"set up a profile, and an editor"},
	{NULL, "test-provider", "", 0, 0, COMMAND_TEST_PROVIDER, OPTION_JSON | OPTION_PROFILE,
		"test the profile's sandbox"},
	{"policy", "policy explain", " OPERATION WORD...", 2, OPTIONS_WORDS_MAX,
		COMMAND_POLICY_EXPLAIN,
		OPTION_JSON | OPTION_PROFILE | OPTION_WORKSPACE | OPTION_APPROVE,
		"print what the policy decides, and why"},
	{"policy", "policy list", "", 0, 0, COMMAND_POLICY_LIST, OPTION_JSON | OPTION_PROFILE,
		"list the hosts that you always allow"},
	{"policy", "policy forget", " HOST[:PORT]", 1, 1, COMMAND_POLICY_FORGET, OPTION_PROFILE,
		"ask about a host again"},
	{"checkpoints", "checkpoints list", "", 0, 0, COMMAND_CHECKPOINTS_LIST,
		OPTION_JSON | STORE_FLAGS, "list the states that you can go back to"},
	{"checkpoints", "checkpoints show", " N", 1, 1, COMMAND_CHECKPOINTS_SHOW,
		OPTION_STAT | STORE_FLAGS, "show what changed in checkpoint N"},
	{"checkpoints", "checkpoints diff", " A [B]", 1, 2, COMMAND_CHECKPOINTS_DIFF,
		OPTION_STAT | STORE_FLAGS, "show what changed from A to B, or to now"},
	{"checkpoints", "checkpoints rollback", " N", 1, 1, COMMAND_CHECKPOINTS_ROLLBACK,
		STORE_FLAGS, "restore the whole workspace from N"},
	{"checkpoints", "checkpoints restore", " N PATH...", 2, OPTIONS_WORDS_MAX,
		COMMAND_CHECKPOINTS_RESTORE, STORE_FLAGS, "restore only these paths from N"},
	{"checkpoints", "checkpoints undelete", " N", 1, 1, COMMAND_CHECKPOINTS_UNDELETE,
		STORE_FLAGS, "restore files that were deleted since"},
	{"conflicts", "conflicts list", "", 0, 0, COMMAND_CONFLICTS_LIST, OPTION_JSON | STORE_FLAGS,
		"list what you and an agent both changed"},
	{"conflicts", "conflicts show", " ID|PATH", 1, 1, COMMAND_CONFLICTS_SHOW,
		OPTION_LOCAL | OPTION_RUNTIME | STORE_FLAGS, "show what each side changed"},
	{"conflicts", "conflicts take", " ID|PATH local|runtime", 2, 2, COMMAND_CONFLICTS_TAKE,
		STORE_FLAGS, "keep one version, end the conflict"},
	{"conflicts", "conflicts edit", " ID|PATH", 1, 1, COMMAND_CONFLICTS_EDIT, STORE_FLAGS,
		"merge both versions in your merge tool"},
	{"commits", "commits list", "", 0, 0, COMMAND_COMMITS_LIST, OPTION_JSON | STORE_FLAGS,
		"list agents' commits, to fetch them"},
	{"commits", "commits take", " [BRANCH]", 0, 1, COMMAND_COMMITS_TAKE,
		OPTION_UNDO | STORE_FLAGS, "move your branch to an agent's commits"},
	{NULL, "status", "", 0, 0, COMMAND_STATUS, OPTION_JSON | OPTION_WATCH,
		"show running brokers and their turns"},
	{"sessions", "sessions list", "", 0, 0, COMMAND_SESSIONS_LIST, OPTION_JSON,
		"list sessions and their states"},
	{"sessions", "sessions show", " SESSION", 1, 1, COMMAND_SESSIONS_SHOW, OPTION_JSON,
		"show everything about one session"},
	{"sessions", "sessions collect", " [SESSION]", 0, 1, COMMAND_SESSIONS_COLLECT, OPTION_INTO,
		"collect what dead brokers left"},
	{"sessions", "sessions stop", " SESSION", 1, 1, COMMAND_SESSIONS_STOP, 0,
		"end its broker, collect, end its sandbox"},
	{"sessions", "sessions discard", " SESSION", 1, 1, COMMAND_SESSIONS_DISCARD, 0,
		"end its sandbox without collecting"},
	{"sessions", "sessions prune", " [AGE]", 0, 1, COMMAND_SESSIONS_PRUNE, 0,
		"forget sessions that ended long ago"},
	{"sandboxes", "sandboxes list", "", 0, 0, COMMAND_SANDBOXES_LIST,
		OPTION_JSON | OPTION_PROFILE, "list sandboxes created for you"},
	{"sandboxes", "sandboxes stop", " NAME", 1, 1, COMMAND_SANDBOXES_STOP, OPTION_PROFILE,
		"stop one; it keeps its files"},
	{"sandboxes", "sandboxes delete", " NAME", 1, 1, COMMAND_SANDBOXES_DELETE,
		OPTION_DISCARD | OPTION_PROFILE, "delete a collected sandbox"},
	{NULL, "du", "", 0, 0, COMMAND_DU, OPTION_JSON, "show what the broker keeps on disk"},
	{NULL, "prune", "", 0, 0, COMMAND_PRUNE, OPTION_OLDER | OPTION_MAX_SIZE | OPTION_DRY_RUN,
		"remove finished copies and stores"},
	{NULL, "help", " [COMMAND]", 0, 2, COMMAND_HELP, 0,
		"print help for all, or for one command"},
	{NULL, "version", "", 0, 0, COMMAND_VERSION, 0, "print the version and exit"},
};

const char *command_row_word(const struct command_row *row, const char *group)
{
	if (!group) {
		return row->group ? row->group : row->name;
	}
	bool is_in_group = row->group && strcmp(row->group, group) == 0;
	return is_in_group ? row->name + strlen(group) + 1 : NULL;
}

const char *options_option_name(size_t index)
{
	return index < ARRAY_LENGTH(option_table) ? option_table[index].name : NULL;
}

const char *options_command_name(size_t index)
{
	return index < ARRAY_LENGTH(command_table) ? command_table[index].name : NULL;
}
