/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_SHOW_H
#define BROKER_CLI_EXEC_SHOW_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"
#include "broker/client/output.h"

/*
 * What exec prints of a turn. As text: the agent's words to the output, tool calls as lines of the
 * log. As JSON: one object per line, each update as in ACP, and the result at the end. Spans are
 * JSON from a checked message.
 */
enum { EXEC_TEXT_MAX = 16 * 1024 * 1024 }; // bytes of the answer in the JSON result

struct exec_show {
	struct output *output; // borrowed
	bool is_json;
	const char *hint; // static; printed once, before the first tool call as text; may be NULL
	bool has_result;  // the last line was printed
	struct buf text;  // for JSON: the agent's words
	char last;        // the last byte of the agent's words; '\n' before the first
	bool is_text_cut;
};

void exec_show_init(struct exec_show *show, struct output *output, bool is_json);
void exec_show_finish(struct exec_show *show);

void exec_show_update(struct exec_show *show, struct span params); // of session/update

/* A question of the agent, and the answer that it gets. */
void exec_show_question(struct exec_show *show, struct span params, struct span answer);

/*
 * The end of the turn; only the first call counts. As JSON, `result` is the answer to
 * session/prompt and `error` a JSON-RPC error. As text, this ends the last line.
 */
void exec_show_result(struct exec_show *show, const char *stop_reason, struct span result);
void exec_show_error(struct exec_show *show, struct span error);
void exec_show_failure(
	struct exec_show *show, const char *text); // the same, for a failure of our own

#endif
