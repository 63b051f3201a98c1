/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/agent/raw.h"
#include "tests/support/agent/turn.h"

/* The requests that an agent sends to its client. */

static const size_t text_max = (size_t)1 << 29;

/* Announces a tool call; `more` has further members, each after a comma. */
static void announce(struct turn *turn, const char *kind, const char *title, const char *more)
{
	char *quoted = raw_quote(span_of(title));
	free(turn->call_id);
	if (asprintf(&turn->call_id, "\"call-%d\"", ++turn->agent->call_count) < 0) {
		abort();
	}
	turn_update(turn,
		"{\"sessionUpdate\":\"tool_call\",\"toolCallId\":%s,\"title\":%s,"
		"\"kind\":\"%s\",\"status\":\"pending\"%s}",
		turn->call_id, quoted, kind, more);
	free(quoted);
}

/* Ends the tool call and prints the reply. */
static void conclude(struct turn *turn, const char *method, const struct reply *reply)
{
	turn_update(turn,
		"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":%s,\"status\":\"%s\"}",
		turn->call_id, reply->error.len > 0 ? "failed" : "completed");
	turn_say_reply(turn, method, reply);
}

static char *located(const char *quoted_path)
{
	char *more = NULL;
	if (asprintf(&more, ",\"locations\":[{\"path\":%s}]", quoted_path) < 0) {
		abort();
	}
	return more;
}

static enum progress run_read(struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		conclude(turn, "fs/read_text_file", reply);
		return COMMAND_DONE;
	}
	char *path = raw_quote(span_of(argument));
	char *more = located(path);
	announce(turn, "read", "Read a file", more);
	turn_call(turn, "fs/read_text_file", "{\"sessionId\":%s,\"path\":%s}",
		turn->session->quoted_id, path);
	free(more);
	free(path);
	return COMMAND_WAITS;
}

/* A line of a script cannot contain a line break; it writes one as JSON does: \n. */
static char *unescape_and_quote(const char *words)
{
	char *body = NULL;
	int length = asprintf(&body, "\"%s\"", words);
	if (length < 0) {
		abort();
	}
	char *text = raw_text((struct span){body, (size_t)length});
	char *quoted = raw_quote(span_of(text != NULL ? text : words));
	free(text);
	free(body);
	return quoted;
}

static enum progress run_write(struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		conclude(turn, "fs/write_text_file", reply);
		return COMMAND_DONE;
	}
	size_t length = strcspn(argument, " ");
	char *path = raw_quote((struct span){argument, length});
	char *text = unescape_and_quote(argument[length] == ' ' ? argument + length + 1 : "");
	char *more = NULL;
	if (asprintf(&more,
		    ",\"locations\":[{\"path\":%s}],\"content\":[{\"type\":\"diff\",\"path\":%s,"
		    "\"oldText\":null,\"newText\":%s}]",
		    path, path, text) < 0) {
		abort();
	}
	announce(turn, "edit", "Write a file", more);
	turn_call(turn, "fs/write_text_file", "{\"sessionId\":%s,\"path\":%s,\"content\":%s}",
		turn->session->quoted_id, path, text);
	free(more);
	free(text);
	free(path);
	return COMMAND_WAITS;
}

static enum progress run_big_request(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "fs/write_text_file", reply);
		return COMMAND_DONE;
	}
	struct buf text;
	buf_init(&text, text_max);
	text_fill(&text, strtoul(argument, NULL, 10));
	const char *cwd = turn->session->cwd; // with its quotes
	turn_call(turn, "fs/write_text_file",
		"{\"sessionId\":%s,\"path\":%.*s/big.txt\",\"content\":\"%.*s\"}",
		turn->session->quoted_id, (int)strlen(cwd) - 1, cwd, PRINTF_BYTES(text));
	buf_finish(&text);
	return COMMAND_WAITS;
}

/* The options are not ordered by preference, so that no client can rely on their order. */
static void ask_permission(struct turn *turn, const char *title)
{
	char *quoted = raw_quote(span_of(title));
	turn_call(turn, "session/request_permission",
		"{\"sessionId\":%s,\"toolCall\":{\"toolCallId\":%s,\"title\":%s,\"kind\":\"edit\","
		"\"status\":\"pending\"},\"options\":["
		"{\"optionId\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_once\"},"
		"{\"optionId\":\"yes\",\"name\":\"Allow\",\"kind\":\"allow_once\"},"
		"{\"optionId\":\"always\",\"name\":\"Always allow\",\"kind\":\"allow_always\"},"
		"{\"optionId\":\"never\",\"name\":\"Always reject\",\"kind\":\"reject_always\"}]}",
		turn->session->quoted_id, turn->call_id, quoted);
	free(quoted);
}

static enum progress run_permission(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		conclude(turn, "session/request_permission", reply);
		return COMMAND_DONE;
	}
	announce(turn, "edit", argument, "");
	ask_permission(turn, argument);
	return COMMAND_WAITS;
}

/* Asks and withdraws the question; the client still answers it once. */
static enum progress run_cancel_request(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		conclude(turn, "session/request_permission", reply);
		return COMMAND_DONE;
	}
	announce(turn, "other", "A question taken back", "");
	ask_permission(turn, "A question taken back");
	agent_send(turn->agent,
		"{\"jsonrpc\":\"2.0\",\"method\":\"$/"
		"cancel_request\",\"params\":{\"requestId\":%s}}",
		turn->waits_for);
	return COMMAND_WAITS;
}

static void call_terminal(struct turn *turn, const char *method)
{
	turn_call(turn, method, "{\"sessionId\":%s,\"terminalId\":%s}", turn->session->quoted_id,
		turn->terminal);
}

static enum progress run_terminal(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	static const char *const methods[] = {
		"terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"};
	if (reply == NULL) {
		char *command = raw_quote(span_of(argument));
		announce(turn, "execute", argument, "");
		turn_call(turn, methods[0],
			"{\"sessionId\":%s,\"command\":%s,\"outputByteLimit\":65536}",
			turn->session->quoted_id, command);
		free(command);
		return COMMAND_WAITS;
	}
	bool last = turn->step == (int)ARRAY_LENGTH(methods);
	if (reply->error.len > 0 || last) {
		conclude(turn, methods[turn->step - 1], reply);
		return COMMAND_DONE;
	}
	turn_say_reply(turn, methods[turn->step - 1], reply);
	if (turn->step == 1) {
		free(turn->terminal);
		turn->terminal = mem_strndup(raw_member(reply->result, "terminalId"));
		turn_update(turn,
			"{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":%s,"
			"\"status\":\"in_progress\","
			"\"content\":[{\"type\":\"terminal\",\"terminalId\":%s}]}",
			turn->call_id, turn->terminal);
	}
	call_terminal(turn, methods[turn->step]);
	return COMMAND_WAITS;
}

/* Starts a command that would run long, and kills it. */
static enum progress run_kill(struct turn *turn, const char *argument, const struct reply *reply)
{
	static const char *const methods[] = {
		"terminal/create", "terminal/kill", "terminal/wait_for_exit", "terminal/release"};
	if (reply == NULL) {
		char *command = raw_quote(span_of(argument));
		turn_call(turn, methods[0], "{\"sessionId\":%s,\"command\":%s}",
			turn->session->quoted_id, command);
		free(command);
		return COMMAND_WAITS;
	}
	turn_say_reply(turn, methods[turn->step - 1], reply);
	if (reply->error.len > 0 || turn->step == (int)ARRAY_LENGTH(methods)) {
		return COMMAND_DONE;
	}
	if (turn->step == 1) {
		free(turn->terminal);
		turn->terminal = mem_strndup(raw_member(reply->result, "terminalId"));
	}
	call_terminal(turn, methods[turn->step]);
	return COMMAND_WAITS;
}

static enum progress run_elicit(struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "elicitation/create", reply);
		return COMMAND_DONE;
	}
	char *message = raw_quote(span_of(argument));
	turn_call(turn, "elicitation/create",
		"{\"sessionId\":%s,\"mode\":\"form\",\"message\":%s,\"requestedSchema\":"
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}",
		turn->session->quoted_id, message);
	free(message);
	return COMMAND_WAITS;
}

/* The other scope: the client's request that this turn answers. */
static enum progress run_elicit_request(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "elicitation/create", reply);
		return COMMAND_DONE;
	}
	char *message = raw_quote(span_of(argument));
	turn_call(turn, "elicitation/create",
		"{\"requestId\":%s,\"mode\":\"form\",\"message\":%s,\"requestedSchema\":"
		"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}}",
		turn->request_id, message);
	free(message);
	return COMMAND_WAITS;
}

static enum progress run_elicit_url(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "elicitation/create", reply);
		agent_send(turn->agent, "{\"jsonrpc\":\"2.0\",\"method\":\"elicitation/complete\","
					"\"params\":{\"elicitationId\":\"el-1\"}}");
		return COMMAND_DONE;
	}
	char *url = raw_quote(span_of(argument));
	turn_call(turn, "elicitation/create",
		"{\"sessionId\":%s,\"mode\":\"url\",\"elicitationId\":\"el-1\",\"url\":%s,"
		"\"message\":\"Please open this page\"}",
		turn->session->quoted_id, url);
	free(url);
	return COMMAND_WAITS;
}

static enum progress run_request(struct turn *turn, const char *argument, const struct reply *reply)
{
	size_t length = strcspn(argument, " ");
	char *method = mem_strndup((struct span){argument, length});
	if (reply != NULL) {
		turn_say_reply(turn, method, reply);
	} else {
		turn_call(
			turn, method, "%s", argument[length] == ' ' ? argument + length + 1 : "{}");
	}
	free(method);
	return reply != NULL ? COMMAND_DONE : COMMAND_WAITS;
}

/* Waits for no answer: only the journal shows it. */
static enum progress run_fire(struct turn *turn, const char *argument, const struct reply *reply)
{
	size_t length = strcspn(argument, " ");
	agent_send(turn->agent, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%.*s\",\"params\":%s}",
		turn->agent->request_count++, (int)length, argument,
		argument[length] == ' ' ? argument + length + 1 : "{}");
	return COMMAND_DONE;
}

/*
 * raw-request ID LINE: sends a line unchanged, and waits for the answer that has exactly this ID.
 */
static enum progress run_raw_request(
	struct turn *turn, const char *argument, const struct reply *reply)
{
	if (reply != NULL) {
		turn_say_reply(turn, "raw-request", reply);
		return COMMAND_DONE;
	}
	size_t length = strcspn(argument, " ");
	free(turn->waits_for);
	turn->waits_for = mem_strndup((struct span){argument, length});
	agent_send_line(turn->agent, span_of(argument[length] == ' ' ? argument + length + 1 : ""));
	return COMMAND_WAITS;
}

const struct command call_commands[] = {
	{"read", run_read, "PATH: fs/read_text_file"},
	{"write", run_write, "PATH TEXT: fs/write_text_file; escapes as in JSON"},
	{"big-request", run_big_request,
		"SIZE: fs/write_text_file of SIZE bytes, big.txt in the cwd"},
	{"permission", run_permission, "TITLE: session/request_permission"},
	{"cancel-request", run_cancel_request, "ask a permission and take it back"},
	{"terminal", run_terminal, "COMMAND: create, wait_for_exit, output, release"},
	{"terminal-kill", run_kill, "COMMAND: create, kill, wait_for_exit, release"},
	{"elicit", run_elicit, "MESSAGE: elicitation/create, a form of the session"},
	{"elicit-request", run_elicit_request, "MESSAGE: the same, of the prompt's request"},
	{"elicit-url", run_elicit_url, "URL: elicitation/create, then elicitation/complete"},
	{"request", run_request, "METHOD PARAMS: any request"},
	{"fire", run_fire, "METHOD PARAMS: the same, and its answer is not waited for"},
	{"raw-request", run_raw_request, "ID LINE: a line as it is; waits for the answer to ID"},
	{0},
};
