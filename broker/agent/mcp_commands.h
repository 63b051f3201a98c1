/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_COMMANDS_H
#define BROKER_AGENT_MCP_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

/*
 * The commands of one session's MCP servers and what is known of them in the
 * sandbox: each different one once.
 */
enum {
	MCP_COMMANDS_MAX = 64,         // different ones that are asked about; further ones are not
	MCP_COMMAND_BYTES_MAX = 4096,  // of a command, and of a PATH; longer ones are not
	MCP_COMMAND_ERROR_BYTES = 512, // of the reason why nothing is known
};

enum mcp_command_state { MCP_COMMAND_UNKNOWN, MCP_COMMAND_EXISTS, MCP_COMMAND_MISSING };

struct mcp_command {
	char *name; // owned; as the agent will be told it
	char *path; // owned; the PATH that the server is given; "" for none of its own
	enum mcp_command_state state;
};

struct mcp_commands {
	struct mcp_command items[MCP_COMMANDS_MAX];
	size_t count;
	char why_unknown[MCP_COMMAND_ERROR_BYTES]; // "" where all is known
};

void mcp_commands_init(struct mcp_commands *commands);
void mcp_commands_finish(struct mcp_commands *commands);

/* Adds it unless it is there; one too many, or too long, is noted in why_unknown instead. */
void mcp_commands_add(struct mcp_commands *commands, const char *name, const char *path);

/* What is known; a command that was not added is unknown. */
enum mcp_command_state mcp_commands_state(
	const struct mcp_commands *commands, const char *name, const char *path);

/*
 * The words that ask a POSIX shell about all of them, NULL-terminated and owned
 * by the caller with words_free; the shell's own PATH is asked too. It
 * answers one letter each and a dot.
 */
char **mcp_commands_argv(const struct mcp_commands *commands);

/* Takes the shell's answer over. ERROR_PROTOCOL where it is none; then nothing is known. */
bool mcp_commands_answer(
	struct mcp_commands *commands, struct span answer, struct error *err) ATTR_NODISCARD;

#endif
