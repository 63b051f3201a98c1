/* SPDX-License-Identifier: MIT */
#ifndef BROKER_AGENT_MCP_TOOLS_H
#define BROKER_AGENT_MCP_TOOLS_H

#include <stdbool.h>

#include "acp/frames.h"
#include "base/buf.h"
#include "base/span.h"

/*
 * The Model Context Protocol of the broker's own server (modelcontextprotocol.io, "Base Protocol"
 * and "Tools", versions 2024-11-05 to 2025-11-25, over stdio): what a client's line asks for, and
 * the answers. It has two tools: `exec` runs a command, `run` runs code in a language of a table.
 * No shell reads either. This file runs nothing.
 */
enum {
	MCP_WORDS_MAX = 1024,          // of a command
	MCP_ID_MAX = 256,              // bytes of a request's id, as it is written
	MCP_OUTPUT_MAX = 64 * 1024,    // bytes that are kept of each output
	MCP_TIMEOUT_MAX = 24 * 3600000 // milliseconds
};

enum mcp_wish_kind {
	MCP_WISH_NOTHING, // the line needs no answer, or `answer` has it
	MCP_WISH_CALL,    // a command is to run
	MCP_WISH_CANCEL,  // the client takes back a call
};

struct mcp_wish {
	enum mcp_wish_kind kind;
	char *id;         // owned, raw: of the request, or of the one that is taken back
	char **words;     // owned, NULL-terminated: the program and its arguments
	struct buf input; // for the command's stdin
	bool has_input;
	char *cwd;      // owned; NULL: the session's directory
	int timeout_ms; // 0: none was given
};

/*
 * Reads a line, which was checked with the places of acp/places.h. *is_greeted says whether the
 * client has sent initialize. `answer` must be initialised; what it has afterwards is to be sent.
 * The caller finishes the wish.
 */
void mcp_wish_read(
	struct mcp_wish *wish, const struct frame *frame, bool *is_greeted, struct buf *answer);
void mcp_wish_finish(struct mcp_wish *wish);

/* What became of a call. */
struct mcp_outcome {
	const char *problem; // why there is no exit status; NULL: there is one
	int code;            // the exit code, unless there is a signal
	int signal;          // 0: none
	struct span out, errors;
	bool out_is_cut, errors_is_cut;
};

/* Writes the answer to a call; `answer` must be initialised. */
void mcp_outcome_write(const struct mcp_outcome *outcome, const char *id, struct buf *answer);

#endif
