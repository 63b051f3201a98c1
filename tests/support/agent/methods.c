/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/agent/agent.h"
#include "tests/support/agent/raw.h"
#include "tests/support/agent/turn.h"

struct request {
	struct agent *agent;
	struct span id; // raw; empty in a notification
	struct span params;
	struct session *session; // the named session, if it is open
};

void agent_answer(struct agent *agent, struct span id, const char *format, ...)
{
	va_list arguments;
	char *result = NULL;
	va_start(arguments, format);
	if (vasprintf(&result, format, arguments) < 0) {
		abort();
	}
	va_end(arguments);
	agent_send(
		agent, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":%s}", PRINTF_BYTES(id), result);
	free(result);
}

void agent_answer_error(struct agent *agent, struct span id, int code, const char *message)
{
	agent_send(agent,
		"{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":\"%s\"}}",
		PRINTF_BYTES(id), code, message);
}

/* {} or null, which the protocol's documentation shows where nothing is required. */
static void answer_nothing(const struct request *request)
{
	agent_answer(
		request->agent, request->id, request->agent->options.null_results ? "null" : "{}");
}

static const char modes_format[] =
	"\"modes\":{\"currentModeId\":%s,\"availableModes\":["
	"{\"id\":\"ask\",\"name\":\"Ask\"},{\"id\":\"code\",\"name\":\"Code\"}]}";

static void answer_initialize(const struct request *request)
{
	const struct agent_options *options = &request->agent->options;
	struct buf result;
	buf_init(&result, 65536);
	text_add(&result, "{\"protocolVersion\":%s,",
		options->protocol_version != NULL ? options->protocol_version : "1");
	text_add(&result, "\"agentCapabilities\":{\"loadSession\":%s,",
		options->no_load ? "false" : "true");
	text_add(&result,
		"\"promptCapabilities\":{\"image\":true,\"audio\":true,\"embeddedContext\":true},"
		"\"mcpCapabilities\":%s,"
		"\"sessionCapabilities\":{\"list\":{},\"delete\":{},"
		"\"additionalDirectories\":{},%s\"close\":{}},"
		"\"auth\":{\"logout\":{}}},",
		options->only_stdio ? "{}" : "{\"http\":true,\"sse\":true}",
		options->no_resume ? "" : "\"resume\":{},");
	text_add(&result, "\"authMethods\":[{\"id\":\"token\",\"name\":\"Token\"}");
	if (options->terminal_auth) {
		text_add(&result, ",{\"id\":\"login\",\"name\":\"Login\",\"type\":\"terminal\","
				  "\"args\":[\"--login\"],\"env\":{\"SCRIPTED_LOGIN\":\"yes\"}}"
				  ",{\"type\":\"terminal\",\"id\":\"login-2\",\"name\":\"Login "
				  "without env\"}");
	}
	if (options->auth_methods != NULL) {
		text_add(&result, ",%s", options->auth_methods);
	}
	text_add(&result, "],\"agentInfo\":{\"name\":\"scripted-agent\",\"version\":\"1.0.0\"}");
	if (options->meta != NULL) {
		text_add(&result, ",\"_meta\":%s", options->meta);
	}
	agent_answer(request->agent, request->id, "%.*s}", PRINTF_BYTES(result));
	buf_finish(&result);
}

static void answer_authenticate(const struct request *request)
{
	request->agent->authenticated = true;
	answer_nothing(request);
}

static void answer_logout(const struct request *request)
{
	request->agent->authenticated = false;
	answer_nothing(request);
}

static void answer_new(const struct request *request)
{
	struct agent *agent = request->agent;
	if (agent->options.need_auth && !agent->authenticated) {
		agent_answer_error(agent, request->id, -32000, "Authentication required");
		return;
	}
	char *id = NULL;
	do { // a loaded session may have the next number
		free(id);
		int process = agent->options.own_names ? (int)getpid() : 0;
		int count = ++agent->session_count;
		if ((process ? asprintf(&id, "sess-%d-%d", process, count)
			     : asprintf(&id, "sess-%d", count)) < 0) {
			abort();
		}
	} while (agent_find_session(agent, id) != NULL);
	struct session *session = agent_make_session(agent, id, raw_member(request->params, "cwd"));
	memory_add(agent, session);
	struct buf result;
	buf_init(&result, 65536);
	text_add(&result, "{\"sessionId\":%s,", session->quoted_id);
	if (agent->options.modes != NULL) {
		text_add(&result, "%s", agent->options.modes);
	} else {
		text_add(&result, modes_format, session->mode);
	}
	agent_answer(agent, request->id, "%.*s}", PRINTF_BYTES(result));
	buf_finish(&result);
}

/*
 * Without --sessions, a session that is loaded need not be known: this agent remembers everything.
 */
static struct session *reopen(const struct request *request)
{
	struct session *session = request->session;
	if (session == NULL && request->agent->options.sessions != NULL) {
		agent_send(request->agent,
			"{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":-32002,\"message\":"
			"\"Resource not found: session\"%s}}",
			PRINTF_BYTES(request->id),
			request->agent->options.error_data ? ",\"data\":{\"of\":\"memory\"}" : "");
		return NULL;
	}
	if (session == NULL) {
		char *id = raw_text(raw_member(request->params, "sessionId"));
		session = agent_make_session(request->agent, id != NULL ? id : mem_strdup(""),
			raw_member(request->params, "cwd"));
	}
	session->closed = false;
	return session;
}

static void replay(struct agent *agent, const struct session *session)
{
	const char *count = agent->options.load_replay;
	const char *size = agent->options.load_size;
	long updates = count != NULL ? strtol(count, NULL, 10) : 2;
	struct buf text;
	buf_init(&text, (size_t)1 << 28);
	text_fill(&text, size != NULL ? strtoul(size, NULL, 10) : 16);
	for (long i = 0; i < updates; i++) {
		agent_send(agent,
			"{\"jsonrpc\":\"2.0\",\"method\":\"session/"
			"update\",\"params\":{\"sessionId\":%s,"
			"\"update\":{\"sessionUpdate\":\"%s_message_chunk\","
			"\"content\":{\"type\":\"text\",\"text\":\"%ld %.*s\"}}}}",
			session->quoted_id, i % 2 == 0 ? "user" : "agent", i, PRINTF_BYTES(text));
	}
	buf_finish(&text);
}

static void answer_load(const struct request *request)
{
	struct session *session = reopen(request);
	if (session == NULL) {
		return;
	}
	const struct agent_options *options = &request->agent->options;
	if (!options->late_replay) {
		replay(request->agent, session);
	}
	if (options->null_results) {
		agent_answer(request->agent, request->id, "null");
	} else {
		agent_answer(request->agent, request->id,
			"{\"modes\":{\"currentModeId\":%s,"
			"\"availableModes\":[{\"id\":\"ask\",\"name\":\"Ask\"}]}}",
			session->mode);
	}
	if (options->late_replay) {
		replay(request->agent, session);
	}
}

static void answer_resume(const struct request *request)
{
	if (reopen(request) != NULL) {
		answer_nothing(request);
	}
}

static void answer_list(const struct request *request)
{
	struct buf result;
	buf_init(&result, (size_t)1 << 24);
	const char *comma = "";
	const char *page = request->agent->options.list_page;
	char *cursor = raw_text(raw_member(request->params, "cursor"));
	long first = cursor != NULL ? strtol(cursor, NULL, 10) : 0;
	long end = page != NULL ? first + strtol(page, NULL, 10) : LONG_MAX;
	long at = 0;
	text_add(&result, "{\"sessions\":[");
	LIST_FOR_EACH(session, &request->agent->sessions, struct session, link) {
		if (at >= first && at < end) {
			text_add(&result,
				"%s{\"sessionId\":%s,\"cwd\":%s,\"title\":\"Session %s\"}", comma,
				session->quoted_id, session->cwd, session->id);
			comma = ",";
		}
		at++;
	}
	text_add(&result, "]");
	if (at > end) {
		text_add(&result, ",\"nextCursor\":\"%ld\"", end);
	}
	agent_answer(request->agent, request->id, "%.*s}", PRINTF_BYTES(result));
	buf_finish(&result);
	free(cursor);
}

static void answer_close(const struct request *request)
{
	if (request->session != NULL) {
		turns_cancel_session(request->agent, request->session);
		request->session->closed = true;
	}
	answer_nothing(request);
}

static void answer_set_mode(const struct request *request)
{
	if (request->agent->options.silent_modes) {
		return;
	}
	if (request->agent->options.refuse_modes) {
		agent_answer_error(request->agent, request->id, -32602, "I stay as I am");
		return;
	}
	struct span mode = raw_member(request->params, "modeId");
	if (request->session != NULL && mode.len > 0) {
		free(request->session->mode);
		request->session->mode = mem_strndup(mode);
		agent_send(request->agent,
			"{\"jsonrpc\":\"2.0\",\"method\":\"session/"
			"update\",\"params\":{\"sessionId\":%s,"
			"\"update\":{\"sessionUpdate\":\"current_mode_update\",\"currentModeId\":%"
			"s}}}",
			request->session->quoted_id, request->session->mode);
	}
	answer_nothing(request);
}

static void answer_set_config(const struct request *request)
{
	if (request->agent->options.silent_modes) {
		return;
	}
	if (request->agent->options.refuse_modes) {
		agent_answer_error(request->agent, request->id, -32602, "I stay as I am");
		return;
	}
	struct span value = raw_member(request->params, "value");
	agent_answer(request->agent, request->id,
		"{\"configOptions\":[{\"id\":\"model\",\"name\":\"Model\",\"type\":\"select\","
		"\"currentValue\":%.*s,\"options\":[{\"value\":\"small\",\"name\":\"Small\"},"
		"{\"value\":\"large\",\"name\":\"Large\"}]}]}",
		PRINTF_BYTES(value));
}

/* The first text block of a prompt is the script. */
static void answer_prompt(const struct request *request)
{
	struct span blocks = raw_member(request->params, "prompt");
	struct span block;
	if (request->session == NULL || request->session->closed) {
		agent_answer_error(
			request->agent, request->id, -32002, "Resource not found: session");
		return;
	}
	char *script = NULL;
	while (script == NULL && raw_next_element(&blocks, &block)) {
		script = raw_text(raw_member(block, "text"));
	}
	turn_start(request->agent, request->session, request->id,
		script != NULL ? script : mem_strdup(""));
}

static void take_cancel(const struct request *request)
{
	if (request->session != NULL) {
		turns_cancel_session(request->agent, request->session);
	}
}

static void take_cancel_request(const struct request *request)
{
	turns_cancel_request(request->agent, raw_member(request->params, "requestId"));
}

/* Extensions, to test how foreign methods pass. */
static void answer_echo(const struct request *request)
{
	agent_answer(request->agent, request->id, "%.*s", PRINTF_BYTES(request->params));
}

static void answer_refuse(const struct request *request)
{
	agent_send(request->agent, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":%.*s}",
		PRINTF_BYTES(request->id), PRINTF_BYTES(request->params));
}

static void take_mirror(const struct request *request)
{
	agent_send(request->agent, "{\"jsonrpc\":\"2.0\",\"method\":\"_mirrored\",\"params\":%.*s}",
		PRINTF_BYTES(request->params));
}

static const struct {
	const char *name;
	bool is_request;
	void (*handle)(const struct request *request);
} methods[] = {
	{"initialize", true, answer_initialize},
	{"authenticate", true, answer_authenticate},
	{"logout", true, answer_logout},
	{"session/new", true, answer_new},
	{"session/load", true, answer_load},
	{"session/resume", true, answer_resume},
	{"session/list", true, answer_list},
	{"session/delete", true, answer_close},
	{"session/close", true, answer_close},
	{"session/prompt", true, answer_prompt},
	{"session/set_mode", true, answer_set_mode},
	{"session/set_config_option", true, answer_set_config},
	{"session/cancel", false, take_cancel},
	{"$/cancel_request", false, take_cancel_request},
	{"_echo", true, answer_echo},
	{"_refuse", true, answer_refuse},
	{"_mirror", false, take_mirror},
};

static void handle_method(const char *name, struct request *request)
{
	char *id = raw_text(raw_member(request->params, "sessionId"));
	request->session = agent_find_session(request->agent, id);
	free(id);
	bool is_request = request->id.len > 0;
	for (size_t i = 0; i < ARRAY_LENGTH(methods); i++) {
		if (methods[i].is_request == is_request && strcmp(methods[i].name, name) == 0) {
			methods[i].handle(request);
			return;
		}
	}
	if (is_request) {
		agent_answer_error(request->agent, request->id, -32601, "Method not found");
	}
}

void agent_handle_line(struct agent *agent, struct span line)
{
	struct span message = raw_value(line);
	if (message.len == 0) {
		return; // a blank line
	}
	if (message.data[0] != '{') {
		agent_answer_error(agent, SPAN_LITERAL("null"), -32700, "Parse error");
		return;
	}
	struct span id = raw_member(message, "id");
	char *method = raw_text(raw_member(message, "method"));
	if (method == NULL) {
		struct reply reply = {raw_member(message, "result"), raw_member(message, "error")};
		if (!turns_take_reply(agent, id, &reply)) {
			fprintf(stderr, "scripted-agent: an answer nobody waits for, id %.*s\n",
				PRINTF_BYTES(id));
		}
		return;
	}
	struct request request = {.agent = agent, .id = id};
	request.params = raw_member(message, "params");
	handle_method(method, &request);
	free(method);
}
