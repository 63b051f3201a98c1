/* SPDX-License-Identifier: MIT */
#include "broker/toolhost/toolhost_internal.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- answers ---- */

static void call_destroy(struct tool_call *call)
{
	if (call->release) {
		call->release(call);
	}
	tool_call_let_go(call);
	list_remove(&call->link);
	buf_finish(&call->result);
	free(call->failure);
	free(call->failure_path);
	free(call->session_id);
	free(call->id);
	free(call);
}

static void raise_answer(struct tool_call *call)
{
	const struct toolhost_config *config = &call->toolhost->config;
	struct span id = span_of(call->id);
	if (!call->failure) {
		config->listener->on_result(config->data, id, &call->result);
		return;
	}
	if (call->failure_path) {
		call->failure->detail = span_of(call->failure_path);
	}
	config->listener->on_failure(config->data, id, call->failure);
}

static void on_answering(struct soon *soon)
{
	struct toolhost *toolhost = CONTAINER_OF(soon, struct toolhost, answering);
	LIST_FOR_EACH(call, &toolhost->answers, struct tool_call, link) {
		raise_answer(call);
		call_destroy(call);
	}
}

/* The call is done except for its answer. */
static void settle(struct tool_call *call)
{
	struct toolhost *toolhost = call->toolhost;
	toolhost->call_count--;
	tool_call_let_go(call);
	list_remove(&call->link);
	if (call->release) {
		void (*release)(struct tool_call *) = call->release;
		call->release = NULL;
		release(call);
	}
	if (toolhost->is_calling || !list_is_empty(&toolhost->answers)) {
		list_append(&toolhost->answers, &call->link);
		soon_start(&toolhost->answering);
		return;
	}
	raise_answer(call);
	call_destroy(call);
}

void tool_call_answer(struct tool_call *call)
{
	settle(call);
}

void tool_call_answer_empty(struct tool_call *call)
{
	buf_add(&call->result, SPAN_LITERAL("{}"));
	settle(call);
}

void tool_call_fail(struct tool_call *call, const char *code, const char *format, ...)
{
	struct error err;
	va_list args;
	va_start(args, format);
	failure_vset(&err, code, "tool", format, args);
	va_end(args);
	tool_call_fail_with(call, &err);
}

void tool_call_fail_with(struct tool_call *call, const struct error *err)
{
	call->failure = mem_alloc(sizeof(*err));
	*call->failure = *err;
	error_at(call->failure, "tool");
	settle(call);
}

/* ---- members ---- */

static char *decode_member(struct tool_call *call, struct span raw, const char *name)
{
	struct buf decoded;
	char *text = NULL;
	if (raw.len == 0 || raw.data[0] != '"') {
		tool_call_fail(call, "INVALID_PARAMS", "\"%s\" is missing or not a string", name);
		return NULL;
	}
	buf_init(&decoded, raw.len);
	bool is_decoded = json_decode_string(raw, &decoded, NULL);
	assert(is_decoded); // the message was checked
	(void)is_decoded;
	struct span bytes = buf_span(&decoded);
	if (bytes.len > 0 && memchr(bytes.data, '\0', bytes.len)) {
		tool_call_fail(call, "SECURITY_VIOLATION",
			"\"%s\": refused: it contains a NUL character", name);
	} else {
		text = mem_strndup(bytes);
	}
	buf_finish(&decoded);
	return text;
}

char *tool_string(struct tool_call *call, const struct tool_params *params, const char *name)
{
	return decode_member(call, json_raw(params->doc, json_get(params->doc, 0, name)), name);
}

char *tool_string_at(struct tool_call *call, const struct tool_params *params, enum place place,
	const char *name)
{
	return decode_member(call, message_place(params->message, place), name);
}

bool tool_number(struct tool_call *call, const struct tool_params *params, const char *name,
	unsigned long long *out_number)
{
	json_node node = json_get(params->doc, 0, name);
	if (node == JSON_NODE_NONE || json_is(params->doc, node, JSON_NULL)) {
		return true;
	}
	long long number = json_int(params->doc, node, -1);
	if (number < 0) {
		tool_call_fail(
			call, "INVALID_PARAMS", "\"%s\" is not a whole number of 0 or more", name);
		return false;
	}
	*out_number = (unsigned long long)number;
	return true;
}

/* ---- roots ---- */

/* The next name of a path, without slashes and dots that have no meaning; empty at its end. */
static struct span next_name(const char **path)
{
	const char *at = *path;
	for (;;) {
		at += strspn(at, "/");
		size_t len = strcspn(at, "/");
		*path = at + len;
		if (len != 1 || *at != '.') {
			return (struct span){at, len};
		}
		at += len;
	}
}

const char *tool_path_below(const char *path, const char *root)
{
	for (;;) {
		struct span wanted = next_name(&root);
		if (wanted.len == 0) {
			return path;
		}
		if (!span_equals(next_name(&path), wanted)) {
			return NULL;
		}
	}
}

bool tool_is_below(const char *path, const char *const *roots)
{
	for (; roots && *roots; roots++) {
		if (tool_path_below(path, *roots)) {
			return true;
		}
	}
	return false;
}

bool tool_covers_sandbox(const struct toolhost *toolhost, const char *const *roots)
{
	const struct sandbox *sandbox = toolhost->config.sandbox;
	for (size_t i = 0; i < sandbox_root_count(sandbox); i++) {
		if (!tool_is_below(sandbox_root_at(sandbox, i)->runtime, roots)) {
			return false;
		}
	}
	return true;
}

/* ---- calls ---- */

static const struct tool_method *find_in(
	const struct tool_method *methods, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(methods[i].name, name) == 0) {
			return &methods[i];
		}
	}
	return NULL;
}

static const struct tool_method *find_method(const char *name)
{
	const struct tool_method *method = find_in(file_methods, file_method_count, name);
	return method ? method : find_in(terminal_methods, terminal_method_count, name);
}

bool toolhost_is_busy(const struct toolhost *toolhost)
{
	return toolhost->call_count > toolhost->held_count || !list_is_empty(&toolhost->answers);
}

void toolhost_visit_running(const struct toolhost *toolhost,
	void (*visit)(void *data, const char *session_id, const char *terminal_id, bool is_ending),
	void *data)
{
	LIST_FOR_EACH(terminal, &toolhost->terminals, struct tool_terminal, link) {
		if (!terminal->is_emptied) {
			bool is_ending =
				terminal->is_released ||
				(terminal->process && terminal_end(terminal->process).has_exited);
			visit(data, terminal->session_id, terminal->id, is_ending);
		}
	}
}

bool toolhost_has_method(const char *method)
{
	return find_method(method) != NULL;
}

static struct tool_call *call_create(struct toolhost *toolhost, const struct tool_method *method,
	struct span id, const char *session_id)
{
	struct tool_call *call = mem_alloc_zero(method->size);
	call->toolhost = toolhost;
	call->id = mem_strndup(id);
	call->session_id = mem_strdup(session_id);
	buf_init(&call->result, SIZE_MAX / 2); // the limits of its content bound it
	list_append(&toolhost->calls, &call->link);
	toolhost->call_count++;
	return call;
}

static void serve(
	struct tool_call *call, const struct tool_method *method, const struct tool_params *params)
{
	if (!params->roots || !params->roots[0]) {
		tool_call_fail(call, "SECURITY_VIOLATION", "%s: refused, the session has no roots",
			method->name);
	} else if (call->toolhost->call_count > TOOL_CALLS_MAX) {
		tool_call_fail(call, "RESOURCE_LIMIT_EXCEEDED",
			"%s: %d calls are already in progress", method->name, (int)TOOL_CALLS_MAX);
	} else {
		method->serve(call, params);
	}
}

void toolhost_call(struct toolhost *toolhost, const struct message *message, const char *session_id,
	const char *const *roots, const char *resolved)
{
	const struct tool_method *method = find_method(message->method);
	assert(method);
	struct tool_call *call = call_create(toolhost, method, message->id, session_id);
	struct tool_params params = {.message = message, .roots = roots, .resolved = resolved};
	struct span text = message_place(message, PLACE_PARAMS);
	struct json_doc *doc = NULL;
	struct error err;
	toolhost->is_calling = true;
	if (text.len == 0 || text.data[0] != '{') {
		tool_call_fail(call, "INVALID_PARAMS", "\"params\" is not an object");
	} else if (method->needs_doc && !(doc = json_doc_parse_unchecked(text, &err))) {
		tool_call_fail_with(call, &err);
	} else {
		params.doc = doc;
		serve(call, method, &params);
	}
	json_doc_destroy(doc);
	toolhost->is_calling = false;
}

/* ---- life ---- */

struct toolhost *toolhost_create(const struct toolhost_config *config)
{
	struct toolhost *toolhost = mem_alloc_zero(sizeof(*toolhost));
	toolhost->config = *config;
	toolhost->config.agent_name = NULL; // owned by the caller
	if (!config->last_terminal) {
		toolhost->config.last_terminal = &toolhost->own_last_terminal;
	}
	toolhost->quirks = quirks_of(config->agent_name);
	list_init(&toolhost->calls);
	list_init(&toolhost->answers);
	list_init(&toolhost->held);
	list_init(&toolhost->files);
	list_init(&toolhost->terminals);
	list_init(&toolhost->displays);
	list_init(&toolhost->past);
	soon_init(&toolhost->answering, toolhost->config.loop, on_answering);
	return toolhost;
}

void toolhost_flush_session(struct toolhost *toolhost, const char *session_id)
{
	displays_flush(toolhost, session_id, NULL);
}

void toolhost_show_last(struct toolhost *toolhost)
{
	displays_end(toolhost, NULL);
}

void toolhost_end_session(struct toolhost *toolhost, const char *session_id)
{
	displays_end(toolhost, session_id);
	struct tool_call *call;
	do {
		call = NULL;
		LIST_FOR_EACH(candidate, &toolhost->calls, struct tool_call, link) {
			if (strcmp(candidate->session_id, session_id) == 0) {
				call = candidate;
				break;
			}
		}
		if (call) {
			tool_call_fail(call, "EDITOR_GONE", "the session has ended");
		}
	} while (call);
	LIST_FOR_EACH(terminal, &toolhost->terminals, struct tool_terminal, link) {
		if (strcmp(terminal->session_id, session_id) == 0) {
			tool_terminal_destroy(terminal);
		}
	}
}

void toolhost_destroy(struct toolhost *toolhost)
{
	if (!toolhost) {
		return;
	}
	toolhost->is_ending = true;
	displays_finish(toolhost);
	soon_stop(&toolhost->answering);
	LIST_FOR_EACH(call, &toolhost->calls, struct tool_call, link) {
		call_destroy(call);
	}
	LIST_FOR_EACH(answer, &toolhost->answers, struct tool_call, link) {
		call_destroy(answer);
	}
	LIST_FOR_EACH(terminal, &toolhost->terminals, struct tool_terminal, link) {
		tool_terminal_destroy(terminal);
	}
	assert(list_is_empty(&toolhost->files) && toolhost->held_bytes == 0);
	free(toolhost->read_buffer);
	free(toolhost);
}
