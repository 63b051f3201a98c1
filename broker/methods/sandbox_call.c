/* SPDX-License-Identifier: MIT */
#include "broker/methods/sandbox_call.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json_utf8.h"
#include "broker/policy/audit.h"
#include "broker/session/answer.h"
#include "broker/session/root_names.h"

static const char replacement[] = "\xef\xbf\xbd"; // U+FFFD

static const struct part_type type = {.size = sizeof(struct list), .init = part_init_list};

struct list *sandbox_calls_of(struct relay *relay)
{
	return parts_get(&relay->parts, &type);
}

int sandbox_calls_count(struct relay *relay)
{
	int count = 0;
	LIST_FOR_EACH(call, sandbox_calls_of(relay), struct sandbox_call, link) {
		count++;
	}
	return count;
}

/* ---- life ---- */

static bool find_session(struct sandbox_call *self, const struct call *call)
{
	const struct session *session = relay_session_of(self->relay, &call->message);
	self->peer = session ? session->peer : NULL;
	self->sandbox = self->peer && !self->peer->is_down && self->peer->is_ready
	                        ? agent_sandbox(self->peer->agent)
	                        : NULL;
	if (self->sandbox) {
		self->session_id = mem_strdup(session->id);
	}
	return self->sandbox != NULL;
}

/* False if the call was refused. */
static bool read_params(struct sandbox_call *self, const struct call *call)
{
	struct span params = message_place(&call->message, PLACE_PARAMS);
	self->params = json_doc_parse_unchecked(params, NULL); // the link has checked it
	json_node encoding = json_get(self->params, 0, "encoding");
	self->is_base64 = json_string_is(self->params, encoding, "base64");
	if (!self->is_base64 && encoding != JSON_NODE_NONE &&
		!json_string_is(self->params, encoding, "utf8")) {
		sandbox_call_refuse(self, "INVALID_PARAMS", "encoding: expected utf8 or base64");
		return false;
	}
	return true;
}

void *sandbox_call_begin(struct relay *relay, const struct call *call, size_t size,
	void (*destroy)(struct sandbox_call *call))
{
	struct sandbox_call *self = mem_alloc_zero(size);
	self->relay = relay;
	self->destroy = destroy;
	self->id = mem_strndup(call->message.id);
	list_append(sandbox_calls_of(relay), &self->link);
	if (!find_session(self, call)) {
		sandbox_call_refuse(self, "INVALID_PARAMS",
			"params.sessionId names no session whose agent runs");
		return NULL;
	}
	return read_params(self, call) ? self : NULL;
}

bool sandbox_call_has_room(struct sandbox_call *call)
{
	int count = sandbox_calls_count(call->relay) - 1;
	if (count >= SANDBOX_CALLS_MAX) {
		sandbox_call_refuse(call, "RESOURCE_LIMIT_EXCEEDED",
			"%d such requests, commands and ports are in progress or kept: "
			"_broker/exec/status forgets a command that has ended, "
			"_broker/forward/close closes a port",
			count);
		return false;
	}
	return true;
}

void sandbox_call_finish(struct sandbox_call *call)
{
	list_remove(&call->link);
	json_doc_destroy(call->params);
	free(call->session_id);
	free(call->id);
}

void sandbox_call_keep(struct sandbox_call *call)
{
	json_doc_destroy(call->params);
	call->params = NULL;
	free(call->id);
	call->id = NULL;
}

void sandbox_call_answer(struct sandbox_call *call, const struct buf *result)
{
	relay_answer(call->relay, span_of(call->id), buf_span(result));
	call->destroy(call);
}

void sandbox_call_fail(struct sandbox_call *call, const struct error *err)
{
	struct error failure = *err;
	relay_fail(call->relay, span_of(call->id), error_at(&failure, "tool"));
	call->destroy(call);
}

void sandbox_call_refuse(struct sandbox_call *call, const char *code, const char *format, ...)
{
	struct error err;
	va_list args;
	va_start(args, format);
	failure_vset(&err, code, "tool", format, args);
	va_end(args);
	relay_fail(call->relay, span_of(call->id), &err);
	call->destroy(call);
}

/* ---- params ---- */

char *sandbox_call_path(struct sandbox_call *call, const char *name, bool is_optional)
{
	json_node node = json_get(call->params, 0, name);
	const struct session *session = session_find(&call->relay->sessions, call->session_id);
	const char *root = session && session->roots ? session->roots[0] : NULL;
	if (node == JSON_NODE_NONE && is_optional) {
		return mem_strdup(root ? root : sandbox_home(call->sandbox));
	}
	char *path = json_string(call->params, node);
	if (!path || path[0] != '/') {
		free(path);
		sandbox_call_refuse(
			call, "INVALID_PARAMS", "%s: expected a path that begins with /", name);
		return NULL;
	}
	char *mapped = relay_map_path(call->peer, PATH_TO_RUNTIME, path);
	free(path);
	return mapped;
}

bool sandbox_call_number(struct sandbox_call *call, const char *name, const long long range[2],
	long long fallback, long long *out)
{
	json_node node = json_get(call->params, 0, name);
	long long number = json_int(call->params, node, range[0] - 1);
	if (node == JSON_NODE_NONE) {
		*out = fallback;
		return true;
	}
	if (number < range[0] || number > range[1]) {
		sandbox_call_refuse(call, "INVALID_PARAMS",
			"%s: expected a number from %lld to %lld", name, range[0], range[1]);
		return false;
	}
	*out = number;
	return true;
}

static bool decode_base64(struct buf *bytes)
{
	uint8_t *decoded = NULL;
	size_t len = 0;
	if (!base64_decode(buf_span(bytes), &decoded, &len)) {
		return false;
	}
	buf_clear(bytes);
	buf_add(bytes,
		(struct span){(const char *)decoded, len}); // decoding makes it shorter, so it fits
	free(decoded);
	return true;
}

bool sandbox_call_bytes(struct sandbox_call *call, const char *name, struct buf *out)
{
	json_node node = json_get(call->params, 0, name);
	if (node == JSON_NODE_NONE) {
		return true;
	}
	if (!json_decode_string(json_raw(call->params, node), out, NULL)) {
		sandbox_call_refuse(call, "INVALID_PARAMS", "%s: expected a string", name);
		return false;
	}
	if (call->is_base64 && !decode_base64(out)) {
		sandbox_call_refuse(call, "INVALID_PARAMS", "%s: expected base64", name);
		return false;
	}
	return true;
}

/* ---- the answer ---- */

static void write_text(struct json_writer *writer, struct span bytes)
{
	struct buf text;
	buf_init(&text, SIZE_MAX / 2);
	while (bytes.len > 0) {
		size_t valid = utf8_valid_length(bytes.data, bytes.len);
		buf_add(&text, (struct span){bytes.data, valid});
		bytes = (struct span){bytes.data + valid, bytes.len - valid};
		if (bytes.len > 0) {
			buf_add(&text, (struct span){replacement, sizeof(replacement) - 1});
			bytes = (struct span){bytes.data + 1, bytes.len - 1};
		}
	}
	json_write_string(writer, buf_span(&text));
	buf_finish(&text);
}

void sandbox_call_write(const struct sandbox_call *call, struct json_writer *writer,
	const char *key, struct span bytes)
{
	json_write_key(writer, key);
	if (!call->is_base64) {
		write_text(writer, bytes);
		return;
	}
	char *encoded = base64_encode(bytes);
	json_write_text(writer, encoded);
	free(encoded);
}

void sandbox_call_audit(const struct sandbox_call *call, const char *operation, const char *subject)
{
	audit_write(call->relay->config.audit, &(struct audit_line){.session = call->session_id,
						       .operation = operation,
						       .subject = subject,
						       .decision = POLICY_ALLOW_ONCE,
						       .by = AUDIT_BY_EDITOR});
}

/* ---- the end ---- */

void sandbox_calls_end(struct relay *relay, const struct peer *peer, const char *session_id,
	const struct error *failure)
{
	LIST_FOR_EACH(call, sandbox_calls_of(relay), struct sandbox_call, link) {
		if ((peer && call->peer != peer) ||
			(session_id && strcmp(call->session_id, session_id) != 0)) {
			continue;
		}
		if (call->id && failure) {
			sandbox_call_fail(call, failure);
		} else {
			call->destroy(call);
		}
	}
}

bool sandbox_calls_cancel(struct relay *relay, struct span id)
{
	LIST_FOR_EACH(call, sandbox_calls_of(relay), struct sandbox_call, link) {
		if (call->id && span_equals(span_of(call->id), id)) {
			relay_answer_cancelled(relay, id);
			call->destroy(call);
			return true;
		}
	}
	return false;
}
