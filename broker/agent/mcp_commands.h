/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_COMMANDS_H
#define BROKER_AGENT_MCP_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * The commands of one session's MCP servers, each different one once, and whether they exist in the
 * sandbox.
 */
enum {
	MCP_COMMANDS_MAX = 64,         // different commands; further ones are not looked up
	MCP_COMMAND_BYTES_MAX = 4096,  // of a command, and of a PATH; longer ones are not looked up
	MCP_COMMAND_ERROR_BYTES = 512, // of the reason why nothing is known
};

enum mcp_command_state { MCP_COMMAND_UNKNOWN, MCP_COMMAND_EXISTS, MCP_COMMAND_MISSING };

struct mcp_command {
	char *name; // owned; as the agent will get it
	char *path; // owned; the server's own PATH, or ""
	enum mcp_command_state state;
};

struct mcp_commands {
	struct mcp_command items[MCP_COMMANDS_MAX];
	size_t count;
	char why_unknown[MCP_COMMAND_ERROR_BYTES]; // "" if everything is known
};

void mcp_commands_init(struct mcp_commands *commands);
void mcp_commands_finish(struct mcp_commands *commands);

/*
 * Adds a command unless it is there. If there are too many, or it is too long, notes that in
 * why_unknown instead.
 */
void mcp_commands_add(struct mcp_commands *commands, const char *name, const char *path);

/* The state of a command; MCP_COMMAND_UNKNOWN if it was not added. */
enum mcp_command_state mcp_commands_state(
	const struct mcp_commands *commands, const char *name, const char *path);

/*
 * The command line of a POSIX shell that looks all of them up, also in the shell's own PATH.
 * NULL-terminated; the caller frees it with words_free. The shell prints one letter for each, and a
 * dot.
 */
char **mcp_commands_argv(const struct mcp_commands *commands);

/* Reads the shell's output. ERROR_PROTOCOL if it has another form; then nothing is known. */
bool mcp_commands_answer(
	struct mcp_commands *commands, struct span answer, struct error *err) ATTR_NODISCARD;

#endif
