/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CLI_EXEC_SHOW_H
#define BROKER_CLI_EXEC_SHOW_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"
#include "broker/client/output.h"

/*
 * What exec shows of a turn. As text: the agent's words on the output, tool calls as lines of the
 * log. As JSON: one object a line, each update as ACP has it, and the result at the end. Spans are
 * JSON of a checked message.
 */
enum { EXEC_TEXT_MAX = 16 * 1024 * 1024 }; // bytes of the answer in the JSON result

struct exec_show {
	struct output *output; // borrowed
	bool is_json;
	const char *hint; // static; said once, before the first tool call as text; may be NULL
	bool has_result;  // the last line is printed
	struct buf text;  // as JSON: what the agent said
	char last;        // byte of what it said; '\n' before the first
	bool is_text_cut;
};

void exec_show_init(struct exec_show *show, struct output *output, bool is_json);
void exec_show_finish(struct exec_show *show);

void exec_show_update(struct exec_show *show, struct span params); // of session/update

/* A question of the agent's, and the answer that it gets. */
void exec_show_question(struct exec_show *show, struct span params, struct span answer);

/*
 * The end of the turn. As JSON: `result` is the answer to session/prompt, `error` a JSON-RPC
 * error; as text the last line is ended. Only the first end counts.
 */
void exec_show_result(struct exec_show *show, const char *stop_reason, struct span result);
void exec_show_error(struct exec_show *show, struct span error);
void exec_show_failure(struct exec_show *show, const char *text); // the same, of our own

#endif
