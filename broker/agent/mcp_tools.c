/* SPDX-License-Identifier: MIT */
#include "broker/agent/mcp_tools.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acp/failure.h"
#include "acp/message.h"
#include "base/json_doc.h"
#include "base/json_names.h"
#include "base/json_writer.h"
#include "base/libc.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/words.h"
#include "broker/agent/mcp_door.h"

/* The newest comes first; it is offered to a client that speaks another version. */
/* Without 2025-03-26, whose servers must take batches. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};

/*
 * The languages of `run`. The code is the last argument, so that policy and the user see it. `-c`
 * and `-e` have the meaning of the program's manual.
 */
static const struct language {
	const char *name;
	const char *words[3]; // in front of the code
} languages[] = {
	{"python", {"python3", "-c"}},
	{"node", {"node", "-e"}},
	{"bash", {"bash", "-c"}},
	{"sh", {"sh", "-c"}},
	{"ruby", {"ruby", "-e"}},
	{"perl", {"perl", "-e"}},
	{"php", {"php", "-r"}},
	{"lua", {"lua", "-e"}},
	{"r", {"Rscript", "-e"}},
};

/* ---- answers ---- */

static void begin(struct json_writer *writer, struct buf *out, const char *id)
{
	json_write_begin(writer, out);
	json_write_object(writer);
	json_write_member(writer, "jsonrpc", "2.0");
	json_write_key(writer, "id");
	if (id) {
		json_write_raw(writer, span_of(id));
	} else {
		json_write_null(writer);
	}
}

static void end(struct json_writer *writer)
{
	json_write_object_end(writer);
	bool is_written = json_write_end(writer, NULL);
	assert(is_written); // the buffer has no limit, and all parts of an answer have one
	(void)is_written;
}

static void write_error(struct buf *out, const char *id, enum rpc_error code, const char *text)
{
	struct json_writer writer;
	begin(&writer, out, id);
	json_write_key(&writer, "error");
	json_write_object(&writer);
	json_write_member_int(&writer, "code", code);
	json_write_member(&writer, "message", text);
	json_write_object_end(&writer);
	end(&writer);
}

static void write_empty(struct buf *out, const char *id)
{
	struct json_writer writer;
	begin(&writer, out, id);
	json_write_member_raw(&writer, "result", SPAN_LITERAL("{}"));
	end(&writer);
}

static void write_text(struct json_writer *writer, struct span text)
{
	json_write_object(writer);
	json_write_member(writer, "type", "text");
	json_write_member_string(writer, "text", text);
	json_write_object_end(writer);
}

static void write_output(
	struct json_writer *writer, const char *name, struct span bytes, bool is_cut)
{
	char note[96];
	struct buf text;
	if (bytes.len == 0) {
		return;
	}
	struct span shown = {bytes.data, is_cut ? utf8_whole_length(bytes) : bytes.len};
	text_format(note, sizeof(note), "\n[%s was cut here: only its first %zu bytes are shown]",
		name, shown.len);
	buf_init(&text, SIZE_MAX / 2);
	buf_add(&text, span_of(name));
	buf_add(&text, SPAN_LITERAL(":\n"));
	buf_add(&text, shown);
	buf_add(&text, is_cut ? span_of(note) : SPAN_LITERAL(""));
	write_text(writer, buf_span(&text));
	buf_finish(&text);
}

static void print_end(const struct mcp_outcome *outcome, char *out, size_t size)
{
	const char *name = libc_signal_name(outcome->signal);
	if (outcome->problem) {
		text_format(out, size, "%s", outcome->problem);
	} else if (outcome->signal == 0) {
		text_format(out, size, "exit code %d", outcome->code);
	} else if (name) {
		text_format(out, size, "killed by SIG%s", name);
	} else {
		text_format(out, size, "killed by signal %d", outcome->signal);
	}
}

void mcp_outcome_write(const struct mcp_outcome *outcome, const char *id, struct buf *answer)
{
	struct json_writer writer;
	char text[ERROR_TEXT_MAX];
	print_end(outcome, text, sizeof(text));
	begin(&writer, answer, id);
	json_write_key(&writer, "result");
	json_write_object(&writer);
	json_write_key(&writer, "content");
	json_write_array(&writer);
	write_text(&writer, span_of(text));
	write_output(&writer, "stdout", outcome->out, outcome->out_is_cut);
	write_output(&writer, "stderr", outcome->errors, outcome->errors_is_cut);
	json_write_array_end(&writer);
	json_write_member_bool(
		&writer, "isError", outcome->problem || outcome->signal != 0 || outcome->code != 0);
	json_write_object_end(&writer);
	end(&writer);
}

/* ---- the list of tools ---- */

#define MORE_PROPERTIES                                                                            \
	"\"stdin\":{\"type\":\"string\",\"description\":\"text for its standard input\"},"         \
	"\"cwd\":{\"type\":\"string\",\"description\":\"absolute path of a directory inside of "   \
	"the session's directories; by default the session's own\"},"                              \
	"\"timeoutMs\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"milliseconds after "  \
	"which it is killed\"}}"

static const char exec_tool[] =
	"{\"name\":\"exec\",\"title\":\"Run a command\",\"description\":\"Runs a program in the "
	"session's sandbox and returns its exit code, stdout and stderr. No shell reads the "
	"words.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"command\":{\"type\":"
	"\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"description\":\"the program "
	"and its arguments, one word each\"}," MORE_PROPERTIES ",\"required\":[\"command\"],"
	"\"additionalProperties\":false}}";

static const char run_tool_begin[] =
	"{\"name\":\"run\",\"title\":\"Run code\",\"description\":\"Runs a piece of code in the "
	"session's sandbox and returns its exit code, stdout and stderr.\",\"inputSchema\":"
	"{\"type\":\"object\",\"properties\":{\"language\":{\"type\":\"string\",\"enum\":[";

static const char run_tool_end[] =
	"]},\"code\":{\"type\":\"string\",\"description\":\"the whole program\"}," MORE_PROPERTIES
	",\"required\":[\"language\",\"code\"],\"additionalProperties\":false}}";

static void write_tools(struct buf *out, const char *id)
{
	struct json_writer writer;
	struct buf tools;
	buf_init(&tools, SIZE_MAX / 2);
	buf_add(&tools, SPAN_LITERAL("{\"tools\":["));
	buf_add(&tools, span_of(exec_tool));
	buf_add(&tools, SPAN_LITERAL(","));
	buf_add(&tools, span_of(run_tool_begin));
	for (size_t i = 0; i < ARRAY_LENGTH(languages); i++) {
		buf_add(&tools, span_of(i > 0 ? ",\"" : "\""));
		buf_add(&tools, span_of(languages[i].name));
		buf_add(&tools, SPAN_LITERAL("\""));
	}
	buf_add(&tools, span_of(run_tool_end));
	buf_add(&tools, SPAN_LITERAL("]}"));
	begin(&writer, out, id);
	json_write_member_raw(&writer, "result", buf_span(&tools));
	end(&writer);
	buf_finish(&tools);
}

static void write_greeting(struct buf *out, const char *id, const char *version)
{
	struct json_writer writer;
	begin(&writer, out, id);
	json_write_key(&writer, "result");
	json_write_object(&writer);
	json_write_member(&writer, "protocolVersion", version);
	json_write_member_raw(&writer, "capabilities", SPAN_LITERAL("{\"tools\":{}}"));
	json_write_key(&writer, "serverInfo");
	json_write_object(&writer);
	json_write_member(&writer, "name", MCP_SERVER_NAME);
	json_write_member(&writer, "version", ACP_BROKER_VERSION);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	end(&writer);
}

/* ---- the arguments of a call ---- */

/* What reading a line needs, and the first mistake in a call. */
struct reading {
	const struct json_doc *doc;
	struct mcp_wish *wish;
	json_node arguments;
	char problem[160];
};

static bool wrong(struct reading *reading, const char *text)
{
	text_format(reading->problem, sizeof(reading->problem), "%s", text);
	return false;
}

static bool has(const struct reading *reading, json_node node)
{
	return node != JSON_NODE_NONE && !json_is(reading->doc, node, JSON_NULL);
}

static bool read_command(struct reading *reading)
{
	json_node list = json_get(reading->doc, reading->arguments, "command");
	size_t count = json_is(reading->doc, list, JSON_ARRAY) ? json_count(reading->doc, list) : 0;
	bool is_fine = count > 0 && count <= MCP_WORDS_MAX;
	for (json_node node = json_first(reading->doc, list); is_fine && node != JSON_NODE_NONE;
		node = json_next(reading->doc, node)) {
		char *word = json_string(reading->doc, node);
		is_fine = word && (reading->wish->words || *word);
		if (is_fine) {
			words_append(&reading->wish->words, word);
		}
		free(word);
	}
	return is_fine || wrong(reading, "command: expected a list of words without NUL, the first "
					 "of which names a program");
}

static bool read_code(struct reading *reading)
{
	const struct json_doc *doc = reading->doc;
	json_node name = json_get(doc, reading->arguments, "language");
	const struct language *found = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(languages); i++) {
		found = json_string_is(doc, name, languages[i].name) ? &languages[i] : found;
	}
	if (!found) {
		return wrong(reading, "language: expected one of those that tools/list names");
	}
	char *code = json_string(doc, json_get(doc, reading->arguments, "code"));
	if (!code) {
		return wrong(reading, "code: expected a text without NUL");
	}
	words_append_all(&reading->wish->words, found->words);
	words_append(&reading->wish->words, code);
	free(code);
	return true;
}

static bool read_more(struct reading *reading)
{
	const struct json_doc *doc = reading->doc;
	struct mcp_wish *wish = reading->wish;
	json_node input = json_get(doc, reading->arguments, "stdin");
	json_node cwd = json_get(doc, reading->arguments, "cwd");
	json_node timeout = json_get(doc, reading->arguments, "timeoutMs");
	char *text = has(reading, input) ? json_string(doc, input) : NULL;
	wish->has_input = text && *text;
	if (has(reading, input) && !text) {
		return wrong(reading, "stdin: expected a text without NUL");
	}
	buf_add(&wish->input, span_of(text ? text : ""));
	free(text);
	wish->cwd = has(reading, cwd) ? json_string(doc, cwd) : NULL;
	if (has(reading, cwd) && (!wish->cwd || wish->cwd[0] != '/')) {
		return wrong(reading, "cwd: expected an absolute path");
	}
	long long ms = json_int(doc, timeout, 0);
	if (has(reading, timeout) && (ms < 1 || ms > MCP_TIMEOUT_MAX)) {
		return wrong(
			reading, "timeoutMs: expected a number of milliseconds, at most a day");
	}
	wish->timeout_ms = (int)ms;
	return true;
}

static void read_call(struct reading *reading, struct buf *answer)
{
	static const struct {
		const char *name;
		bool (*read)(struct reading *reading);
	} tools[] = {{"exec", read_command}, {"run", read_code}};
	const struct json_doc *doc = reading->doc;
	struct mcp_wish *wish = reading->wish;
	json_node name = json_path(doc, 0, "params.name");
	reading->arguments = json_path(doc, 0, "params.arguments");
	for (size_t i = 0; i < ARRAY_LENGTH(tools); i++) {
		if (!json_string_is(doc, name, tools[i].name)) {
			continue;
		}
		if (tools[i].read(reading) && read_more(reading)) {
			wish->kind = MCP_WISH_CALL;
			return;
		}
		const struct mcp_outcome outcome = {.problem = reading->problem};
		mcp_outcome_write(&outcome, wish->id, answer);
		return;
	}
	write_error(answer, wish->id, RPC_INVALID_PARAMS, "unknown tool: see tools/list");
}

/* ---- methods ---- */

static void greet(struct reading *reading, struct buf *answer)
{
	json_node wanted = json_path(reading->doc, 0, "params.protocolVersion");
	const char *version = versions[0];
	for (size_t i = 0; i < ARRAY_LENGTH(versions); i++) {
		version = json_string_is(reading->doc, wanted, versions[i]) ? versions[i] : version;
	}
	write_greeting(answer, reading->wish->id, version);
}

static void list(struct reading *reading, struct buf *answer)
{
	write_tools(answer, reading->wish->id);
}

static void ping(struct reading *reading, struct buf *answer)
{
	write_empty(answer, reading->wish->id);
}

static const struct mcp_method {
	const char *name;
	bool is_early; // allowed before initialize
	void (*serve)(struct reading *reading, struct buf *answer);
} methods[] = {
	{"initialize", true, greet},
	{"ping", true, ping},
	{"tools/list", false, list},
	{"tools/call", false, read_call},
};

static void serve(struct reading *reading, json_node name, bool *is_greeted, struct buf *answer)
{
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (!json_string_is(reading->doc, name, methods[i].name)) {
			continue;
		}
		if (!methods[i].is_early && !*is_greeted) {
			write_error(answer, reading->wish->id, RPC_INVALID_REQUEST,
				"initialize must come first");
			return;
		}
		*is_greeted = *is_greeted || methods[i].serve == greet;
		methods[i].serve(reading, answer);
		return;
	}
	write_error(answer, reading->wish->id, RPC_METHOD_NOT_FOUND, "unknown method");
}

/* A string or a number; as it is written. NULL: it is something else, or too long. */
static char *take_id(const struct json_doc *doc, json_node node)
{
	bool is_id = json_is(doc, node, JSON_STRING) || json_is(doc, node, JSON_NUMBER);
	struct span raw = is_id ? json_raw(doc, node) : (struct span){NULL, 0};
	return is_id && raw.len <= MCP_ID_MAX ? mem_strndup(raw) : NULL;
}

/*
 * Answers a line that is no request, with its id if that can be read: otherwise the client would
 * wait for an answer. A broken answer gets none.
 */
static void refuse_line(
	const struct frame *frame, enum rpc_error code, const char *text, struct buf *answer)
{
	struct span raw = message_broken_id(frame);
	char *id = raw.len > 0 && raw.len <= MCP_ID_MAX ? mem_strndup(raw) : NULL;
	if (!message_broken_is_response(frame)) {
		write_error(answer, id, code, text);
	}
	free(id);
}

static void read_document(const struct json_doc *doc, const struct frame *frame,
	struct mcp_wish *wish, bool *is_greeted, struct buf *answer)
{
	struct reading reading = {.doc = doc, .wish = wish, .arguments = JSON_NODE_NONE};
	json_node id = json_get(doc, 0, "id");
	json_node method = json_get(doc, 0, "method");
	bool is_message = json_is(doc, 0, JSON_OBJECT) &&
	                  json_string_is(doc, json_get(doc, 0, "jsonrpc"), "2.0");
	if (!is_message) {
		refuse_line(frame, RPC_INVALID_REQUEST, "not a JSON-RPC 2.0 message", answer);
	} else if (method == JSON_NODE_NONE) {
		return; // an answer, although nothing was asked
	} else if (id == JSON_NODE_NONE) {
		if (json_string_is(doc, method, "notifications/cancelled")) {
			wish->id = take_id(doc, json_path(doc, 0, "params.requestId"));
			wish->kind = wish->id ? MCP_WISH_CANCEL : MCP_WISH_NOTHING;
		}
	} else if (!(wish->id = take_id(doc, id))) {
		write_error(answer, NULL, RPC_INVALID_REQUEST,
			"id: expected a number or a string of at most 254 bytes");
	} else {
		serve(&reading, method, is_greeted, answer);
	}
}

void mcp_wish_read(
	struct mcp_wish *wish, const struct frame *frame, bool *is_greeted, struct buf *answer)
{
	static const char *const known[] = {"jsonrpc", "id", "method", "params", "name",
		"arguments", "command", "stdin", "cwd", "timeoutMs", "language", "code",
		"requestId", NULL};
	static const char *const opaque[] = {"_meta", "capabilities", "clientInfo", NULL};
	const struct json_name_rules rules = {.known = known, .opaque = opaque};
	struct error err;
	*wish = (struct mcp_wish){.kind = MCP_WISH_NOTHING};
	buf_init(&wish->input, SIZE_MAX / 2);
	if (frame->kind != FRAME_MESSAGE) {
		refuse_line(frame,
			frame->kind == FRAME_TOO_LONG ? RPC_INVALID_REQUEST : RPC_PARSE_ERROR,
			frame->error.text, answer);
		return;
	}
	struct json_doc *doc = json_names_check(frame->bytes, &rules, &err)
	                               ? json_doc_parse_unchecked(frame->bytes, &err)
	                               : NULL;
	if (!doc) {
		refuse_line(frame, RPC_INVALID_REQUEST, err.text, answer);
		return;
	}
	read_document(doc, frame, wish, is_greeted, answer);
	json_doc_destroy(doc);
}

void mcp_wish_finish(struct mcp_wish *wish)
{
	free(wish->id);
	words_free(wish->words);
	buf_finish(&wish->input);
	free(wish->cwd);
}
