/* SPDX-License-Identifier: MIT */
#include "broker/config/options_tables.h"

#include <stdio.h>

#include "base/text.h"

const struct option option_table[OPTION_TABLE_LENGTH] = {
	{"--profile", "NAME", offsetof(struct options, profile), COMMAND_RUN, 0,
		"use [profile \"NAME\"] of the configuration"},
	{"--workspace", "DIR", offsetof(struct options, workspace), COMMAND_RUN, 0,
		"work in DIR instead of the directory the editor names"},
	{"--config", "FILE", offsetof(struct options, config), COMMAND_RUN, 0,
		"read FILE instead of $XDG_CONFIG_HOME/acp-broker/config"},
	{"--toolhost", "MODE", offsetof(struct options, toolhost), COMMAND_RUN, 0,
		"who serves files and terminals: auto, editor or broker"},
	{"--trace", "FILE", offsetof(struct options, trace), COMMAND_RUN, 0,
		"write every message of every hop to FILE"},
	{"--log-level", "LEVEL", offsetof(struct options, log_level), COMMAND_RUN, 0,
		"error, warning, info or debug"},
	{"--json", NULL, 0, COMMAND_RUN, OPTION_JSON, "list for programs"},
	{"--stat", NULL, 0, COMMAND_RUN, OPTION_STAT, "how much changed in which file, no more"},
	{"--local", NULL, 0, COMMAND_RUN, OPTION_LOCAL, "the version that was here, as it is"},
	{"--runtime", NULL, 0, COMMAND_RUN, OPTION_RUNTIME,
		"the version that was in the sandbox, as it is"},
	{"--undo", NULL, 0, COMMAND_RUN, OPTION_UNDO, "move back what the last one has moved"},
	{"--into", "DIR", offsetof(struct options, into), COMMAND_RUN, OPTION_INTO,
		"where what is collected goes, if the workspace is gone"},
	{"--older", "AGE", offsetof(struct options, older), COMMAND_RUN, OPTION_OLDER,
		"what was not used for so long: 30d"},
	{"--max-size", "SIZE", offsetof(struct options, max_size), COMMAND_RUN, OPTION_MAX_SIZE,
		"until all copies and stores take no more: 20g"},
	{"--dry-run", NULL, 0, COMMAND_RUN, OPTION_DRY_RUN, "say what would go, change nothing"},
	{"--discard", NULL, 0, COMMAND_RUN, OPTION_DISCARD, "also what is not collected"},
	{"--help", NULL, 0, COMMAND_HELP, 0, "print this and exit"},
	{"--version", NULL, 0, COMMAND_VERSION, 0, "print the version and exit"},
};

const struct command_row command_table[COMMAND_TABLE_LENGTH] = {
	{NULL, "check", "", 0, 0, COMMAND_CHECK, 0, "print what the configuration means"},
	{NULL, "test-provider", "", 0, 0, COMMAND_TEST_PROVIDER, OPTION_JSON,
		"try what the broker needs of a sandbox"},
	{"checkpoints", "checkpoints list", "", 0, 0, COMMAND_CHECKPOINTS_LIST, OPTION_JSON,
		"what one can go back to"},
	{"checkpoints", "checkpoints show", " N", 1, 1, COMMAND_CHECKPOINTS_SHOW, OPTION_STAT,
		"what changed in checkpoint N"},
	{"checkpoints", "checkpoints diff", " A [B]", 1, 2, COMMAND_CHECKPOINTS_DIFF, OPTION_STAT,
		"what changed from A to B, or to now"},
	{"checkpoints", "checkpoints rollback", " N", 1, 1, COMMAND_CHECKPOINTS_ROLLBACK, 0,
		"make the workspace what it was in N"},
	{"checkpoints", "checkpoints restore", " N PATH...", 2, OPTIONS_WORDS_MAX,
		COMMAND_CHECKPOINTS_RESTORE, 0, "bring back these paths alone"},
	{"checkpoints", "checkpoints undelete", " N", 1, 1, COMMAND_CHECKPOINTS_UNDELETE, 0,
		"bring back what is not here any more"},
	{"conflicts", "conflicts list", "", 0, 0, COMMAND_CONFLICTS_LIST, OPTION_JSON,
		"what both sides changed"},
	{"conflicts", "conflicts show", " ID|PATH", 1, 1, COMMAND_CONFLICTS_SHOW,
		OPTION_LOCAL | OPTION_RUNTIME, "the two versions of one"},
	{"conflicts", "conflicts take", " ID|PATH local|runtime", 2, 2, COMMAND_CONFLICTS_TAKE, 0,
		"keep one version, end the conflict"},
	{"conflicts", "conflicts edit", " ID|PATH", 1, 1, COMMAND_CONFLICTS_EDIT, 0,
		"make one of both, in your merge tool"},
	{"commits", "commits list", "", 0, 0, COMMAND_COMMITS_LIST, OPTION_JSON,
		"what agents have committed, to fetch"},
	{"commits", "commits take", " [BRANCH]", 0, 1, COMMAND_COMMITS_TAKE, OPTION_UNDO,
		"move your branch to an agent's commits"},
	{"sessions", "sessions list", "", 0, 0, COMMAND_SESSIONS_LIST, OPTION_JSON,
		"what brokers have written down of theirs"},
	{"sessions", "sessions show", " SESSION", 1, 1, COMMAND_SESSIONS_SHOW, OPTION_JSON,
		"all that is known of one"},
	{"sessions", "sessions collect", " [SESSION]", 0, 1, COMMAND_SESSIONS_COLLECT, OPTION_INTO,
		"bring here what dead brokers left"},
	{"sessions", "sessions stop", " SESSION", 1, 1, COMMAND_SESSIONS_STOP, 0,
		"end its broker, collect, end its sandbox"},
	{"sessions", "sessions discard", " SESSION", 1, 1, COMMAND_SESSIONS_DISCARD, 0,
		"end its sandbox, lose what is in it"},
	{"sessions", "sessions prune", " [AGE]", 0, 1, COMMAND_SESSIONS_PRUNE, 0,
		"forget what was collected long ago"},
	{"sandboxes", "sandboxes list", "", 0, 0, COMMAND_SANDBOXES_LIST, OPTION_JSON,
		"what was made elsewhere for you"},
	{"sandboxes", "sandboxes stop", " NAME", 1, 1, COMMAND_SANDBOXES_STOP, 0,
		"stop one; its files stay"},
	{"sandboxes", "sandboxes delete", " NAME", 1, 1, COMMAND_SANDBOXES_DELETE, OPTION_DISCARD,
		"delete one that is collected"},
	{NULL, "du", "", 0, 0, COMMAND_DU, OPTION_JSON, "what is kept on the disk, and how big"},
	{NULL, "prune", "", 0, 0, COMMAND_PRUNE, OPTION_OLDER | OPTION_MAX_SIZE | OPTION_DRY_RUN,
		"remove what is finished"},
	{NULL, "help", "", 0, 0, COMMAND_HELP, 0, "print this and exit"},
	{NULL, "version", "", 0, 0, COMMAND_VERSION, 0, "print the version and exit"},
};

void options_print_help(void)
{
	puts("Usage: acp-broker [OPTION...] [COMMAND [WORD...]] [-- AGENT [ARG...]]\n\n"
	     "Stands between an editor and an ACP agent: launches the agent, carries the\n"
	     "session over stdin and stdout, and leaves nothing behind.\n\nOptions:");
	for (size_t i = 0; i < ARRAY_LENGTH(option_table); i++) {
		const struct option *option = &option_table[i];
		char left[32];
		text_format(left, sizeof(left), "%s%s%s", option->name,
			option->value_name ? " " : "",
			option->value_name ? option->value_name : "");
		printf("  %-20s %s\n", left, option->help);
	}
	puts("\nCommands:");
	for (size_t i = 0; i < ARRAY_LENGTH(command_table); i++) {
		char left[64];
		text_format(
			left, sizeof(left), "%s%s", command_table[i].name, command_table[i].words);
		printf("  %-37s %s\n", left, command_table[i].help);
	}
	puts("\nacp-broker(1) says more; acp-broker.config(5) describes the configuration.");
}

void options_print_version(void)
{
	puts("acp-broker " ACP_BROKER_VERSION);
}

const char *options_option_name(size_t index)
{
	return index < ARRAY_LENGTH(option_table) ? option_table[index].name : NULL;
}

const char *options_command_name(size_t index)
{
	return index < ARRAY_LENGTH(command_table) ? command_table[index].name : NULL;
}
