/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

/*
 * Looks up pairs of a PATH and a command. A command with a slash is a file name, relative to the
 * session's directory (execve(2)). All others are searched for on the server's PATH and on the
 * agent's, because agents differ in which they use. `command -v` would also find the shell's
 * builtins.
 */
static const char script[] =
	"exec 2>/dev/null; set -f\n"
	"runs() { [ -f \"$1\" ] && [ -x \"$1\" ]; }\n"
	"found() { IFS=:; for d in $1; do runs \"${d:-.}/$2\" && return 0; done; return 1; }\n"
	"while [ $# -gt 1 ]; do\n"
	"case $2 in\n"
	"*/*) runs \"$2\";;\n"
	"*) found \"$1\" \"$2\" || found \"$PATH\" \"$2\";;\n"
	"esac && printf y || printf n\n"
	"shift 2\n"
	"done\n"
	"printf .\n";

void mcp_commands_init(struct mcp_commands *commands)
{
	commands->count = 0;
	commands->why_unknown[0] = '\0';
}

void mcp_commands_finish(struct mcp_commands *commands)
{
	for (size_t i = 0; i < commands->count; i++) {
		free(commands->items[i].name);
		free(commands->items[i].path);
	}
	commands->count = 0;
}

static const struct mcp_command *find(
	const struct mcp_commands *commands, const char *name, const char *path)
{
	for (size_t i = 0; i < commands->count; i++) {
		const struct mcp_command *command = &commands->items[i];
		if (strcmp(command->name, name) == 0 && strcmp(command->path, path) == 0) {
			return command;
		}
	}
	return NULL;
}

void mcp_commands_add(struct mcp_commands *commands, const char *name, const char *path)
{
	if (find(commands, name, path)) {
		return;
	}
	if (strlen(name) > MCP_COMMAND_BYTES_MAX || strlen(path) > MCP_COMMAND_BYTES_MAX) {
		snprintf(commands->why_unknown, sizeof(commands->why_unknown),
			"a command or a PATH of more than %d bytes is not looked up",
			MCP_COMMAND_BYTES_MAX);
		return;
	}
	if (commands->count == MCP_COMMANDS_MAX) {
		snprintf(commands->why_unknown, sizeof(commands->why_unknown),
			"no more than %d different commands are looked up", MCP_COMMANDS_MAX);
		return;
	}
	commands->items[commands->count++] =
		(struct mcp_command){.name = mem_strdup(name), .path = mem_strdup(path)};
}

enum mcp_command_state mcp_commands_state(
	const struct mcp_commands *commands, const char *name, const char *path)
{
	const struct mcp_command *command = find(commands, name, path);
	return command ? command->state : MCP_COMMAND_UNKNOWN;
}

char **mcp_commands_argv(const struct mcp_commands *commands)
{
	char **argv = NULL;
	words_append(&argv, "/bin/sh");
	words_append(&argv, "-c");
	words_append(&argv, script);
	words_append(&argv, "sh");
	for (size_t i = 0; i < commands->count; i++) {
		words_append(&argv, commands->items[i].path);
		words_append(&argv, commands->items[i].name);
	}
	return argv;
}

static bool is_answer(const struct mcp_commands *commands, struct span answer)
{
	for (size_t i = 0; i < commands->count && i < answer.len; i++) {
		if (answer.data[i] != 'y' && answer.data[i] != 'n') {
			return false;
		}
	}
	return answer.len == commands->count + 1 && answer.data[commands->count] == '.';
}

bool mcp_commands_answer(struct mcp_commands *commands, struct span answer, struct error *err)
{
	if (!is_answer(commands, answer)) {
		return error_set(err, ERROR_PROTOCOL,
			"the sandbox's shell answered %zu bytes that are no answer", answer.len);
	}
	for (size_t i = 0; i < commands->count; i++) {
		commands->items[i].state =
			answer.data[i] == 'y' ? MCP_COMMAND_EXISTS : MCP_COMMAND_MISSING;
	}
	return true;
}
