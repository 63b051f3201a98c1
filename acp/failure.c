/* SPDX-License-Identifier: MIT */
#include "acp/failure.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_doc.h"
#include "base/text.h"
#include "base/utf8.h"

enum { FAILURE_URI_MAX = 16 * 1024 }; // a path of 4096 bytes, each of them percent-encoded

const struct failure_code failure_codes[] = {
	{"PARSE_ERROR", RPC_PARSE_ERROR, false,
		"send one JSON document per line; the message says what is wrong, and where"},
	{"INVALID_MESSAGE", RPC_INVALID_REQUEST, false,
		"send single JSON-RPC 2.0 messages; the message has the rule that was broken"},
	{"MESSAGE_TOO_LONG", RPC_INTERNAL_ERROR, false,
		"send less, or raise max-message in the profile"},
	{"METHOD_NOT_FOUND", RPC_METHOD_NOT_FOUND, false,
		"use a method that _meta.broker of initialize lists"},
	{"INVALID_PARAMS", RPC_INVALID_PARAMS, false, "correct the named member"},
	{"PROTOCOL_UNSUPPORTED", RPC_INTERNAL_ERROR, false,
		"use a version of the agent that speaks ACP version 1"},
	{"VERSION_NOT_SPOKEN", RPC_UNSUPPORTED_VERSION, false,
		"send the initialize of ACP version 1, with protocolVersion 1"},
	{"CONFIG_INVALID", RPC_INTERNAL_ERROR, false,
		"correct the named setting; acp-broker check shows how the broker reads it"},
	{"NETWORK_NOT_ENFORCED", RPC_INTERNAL_ERROR, false,
		"use a backend that enforces it, or remove required; the message has the key"},
	{"SANDBOX_NOT_FOUND", RPC_INTERNAL_ERROR, false, "start a new session"},
	{"SANDBOX_UNAVAILABLE", RPC_INTERNAL_ERROR, true,
		"try again; the message says why it failed"},
	{"SANDBOX_FAILED", RPC_INTERNAL_ERROR, false,
		"do what the message says; it has the service's own reason"},
	{"SANDBOX_ELSEWHERE", RPC_INTERNAL_ERROR, false, "change the profile or KUBECONFIG back"},
	{"SANDBOX_IN_USE", RPC_INTERNAL_ERROR, true, "end the other sessions in the sandbox first"},
	{"AGENT_STILL_RUNNING", RPC_INTERNAL_ERROR, true,
		"end the process that the message names there, or wait as long as it says, then "
		"try again"},
	{"LINK_LOST", RPC_INTERNAL_ERROR, true, "try again; the message says how it was lost"},
	{"SETUP_FAILED", RPC_INTERNAL_ERROR, false,
		"correct the line of setup, or the file of copy, that the message names"},
	{"AGENT_NOT_FOUND", RPC_INTERNAL_ERROR, false,
		"do what the message says: install it, show it to the confinement, or name its "
		"full "
		"path"},
	{"AGENT_NOT_EXECUTABLE", RPC_INTERNAL_ERROR, false,
		"check the file's mode and its first line"},
	{"AGENT_START_FAILED", RPC_INTERNAL_ERROR, true,
		"try again; the message says what was refused"},
	{"AGENT_EXITED", RPC_INTERNAL_ERROR, true,
		"send the next request: it restarts the agent and restores its session"},
	{"SESSION_IN_USE", RPC_INTERNAL_ERROR, false,
		"close the session in the editor that has it open, or end the broker that the "
		"message names"},
	{"SESSION_BUSY", RPC_INTERNAL_ERROR, true,
		"try again after the session's files were collected"},
	{"CHOICE_REFUSED", RPC_INTERNAL_ERROR, false,
		"choose the mode, model or option again, or another, then prompt again"},
	{"SESSION_LOST", RPC_INTERNAL_ERROR, false,
		"start a new session; the files are where the message says"},
	{"TIMEOUT_EXCEEDED", RPC_INTERNAL_ERROR, true,
		"try again, or raise the named deadline in the profile"},
	{"RESOURCE_LIMIT_EXCEEDED", RPC_INTERNAL_ERROR, true,
		"wait for the requests that are running, or raise the named limit in the profile"},
	{"SESSION_CONFLICT", RPC_INTERNAL_ERROR, false, "close the other session first"},
	{"RESOURCE_NOT_FOUND", RPC_RESOURCE_NOT_FOUND, false,
		"create the file first, or name another"},
	{"DIRECTORY_NOT_FOUND", RPC_INVALID_PARAMS, false,
		"create the directory that the message names first, or name another"},
	{"FILE_NOT_TEXT", RPC_INTERNAL_ERROR, false, "look at it with a command in a terminal"},
	{"COMMAND_NOT_FOUND", RPC_INTERNAL_ERROR, false,
		"install it, or name its full path; the message has the PATH searched"},
	{"SECURITY_VIOLATION", RPC_INTERNAL_ERROR, false,
		"stay in the session's directories; the message has the path and the rule"},
	{"PERMISSION_DENIED", RPC_INTERNAL_ERROR, false,
		"change the policy if you did not want this; the message has the rule"},
	{"EDITOR_GONE", RPC_INTERNAL_ERROR, false, "end as well"},
	{"SHUTTING_DOWN", RPC_INTERNAL_ERROR, false, "start another broker"},
	{"SYSTEM_ERROR", RPC_INTERNAL_ERROR, true,
		"try again; the message says what was refused and why"},
	{"SYNC_INCOMPLETE", RPC_INTERNAL_ERROR, false,
		"collect first, or discard the changes explicitly"},
	{"SYNC_BUSY", RPC_INTERNAL_ERROR, true,
		"try again when no program writes to the named file any more"},
	{"RUNTIME_CHANGED", RPC_INTERNAL_ERROR, true,
		"try again when no program in the sandbox changes its files any more"},
	{"DISK_FULL", RPC_INTERNAL_ERROR, true, "free space where the message says"},
	{"WORKSPACE_REPLACED", RPC_INTERNAL_ERROR, true,
		"mount the workspace again, or say yes if it is the right folder"},
	{"SYNC_TOOL_MISSING", RPC_INTERNAL_ERROR, false,
		"install the named program on the side that the message names"},
	{"NOT_SYNCED", RPC_INTERNAL_ERROR, false,
		"use a profile whose sandbox has a copy of the workspace, and sync"},
	{"TOOLS_IN_FLIGHT", RPC_INTERNAL_ERROR, true,
		"cancel what the message names, or wait until it ends"},
	{"SESSION_PAUSED", RPC_INTERNAL_ERROR, true,
		"send _broker/session/resume for the session, then try again"},
	{"PAUSE_INTERRUPTED", RPC_INTERNAL_ERROR, true,
		"look at the session's state (_broker/session/status), and try again"},
	{"FORWARD_UNSUPPORTED", RPC_INTERNAL_ERROR, false,
		"do what the message says; the port cannot be led there"},
	{"PAUSE_UNSUPPORTED", RPC_INTERNAL_ERROR, false,
		"end the session instead; its files are kept"},
	{"ROLLBACK_IN_PROGRESS", RPC_INTERNAL_ERROR, true, "try again when it has ended"},
};
const size_t failure_code_count = ARRAY_LENGTH(failure_codes);

const struct failure_code *failure_code_find(const char *name)
{
	for (size_t i = 0; i < failure_code_count; i++) {
		if (strcmp(failure_codes[i].name, name) == 0) {
			return &failure_codes[i];
		}
	}
	return NULL;
}

/* Only call this for names in the program's own code, all of which its tests cover. */
const struct failure_code *failure_code_get(const char *name)
{
	const struct failure_code *code = failure_code_find(name);
	assert(code && "a failure code that the table does not have");
	return code;
}

const char *failure_code_of(const struct error *err)
{
	return error_told_code(err);
}

bool failure_is(const struct error *err, const char *code)
{
	return strcmp(failure_code_of(err), code) == 0;
}

/* The error_code that tells a caller what it can do. */
static enum error_code error_of(const struct failure_code *code)
{
	for (enum error_code i = ERROR_SYSTEM; i <= ERROR_TIMEOUT; i++) {
		if (strcmp(error_code_told(i), code->name) == 0) {
			return i;
		}
	}
	return code->retryable ? ERROR_UNAVAILABLE : ERROR_PROTOCOL;
}

const struct error *failure_vset(
	struct error *err, const char *code, const char *stage, const char *format, va_list args)
{
	const struct failure_code *row = failure_code_get(code);
	error_vset_reason(err, error_of(row), row->name, format, args);
	return error_at(err, stage);
}

const struct error *failure_set(
	struct error *err, const char *code, const char *stage, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	failure_vset(err, code, stage, format, args);
	va_end(args);
	return err;
}

char *failure_read_error(struct span error, char said[FAILURE_SAID_MAX])
{
	struct json_doc *doc = error.len > 0 ? json_doc_parse_unchecked(error, NULL) : NULL;
	char *message = doc ? json_string(doc, json_get(doc, 0, "message")) : NULL;
	json_node data = doc ? json_get(doc, 0, "data") : JSON_NODE_NONE;
	bool has_data = data != JSON_NODE_NONE && !json_is(doc, data, JSON_NULL);
	char *text = has_data ? json_string(doc, data) : NULL;
	struct span detail = text ? span_of(text) : has_data ? json_raw(doc, data) : error;
	if (!doc) {
		has_data = error.len > 0; // too much to be read: told as it is
	}
	if (detail.len > FAILURE_DETAIL_MAX) {
		detail.len = FAILURE_DETAIL_MAX;
		detail.len = utf8_whole_length(detail);
	}
	text_format(said, FAILURE_SAID_MAX, "the agent says: %s",
		message ? message : "an error without a message");
	char *out = has_data && detail.len > 0 ? mem_strndup(detail) : NULL;
	free(message);
	free(text);
	json_doc_destroy(doc);
	return out;
}

/* RFC 8089: every byte but those a path may have unescaped (RFC 3986, section 3.3) is encoded. */
static void write_file_uri(struct json_writer *writer, struct span path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~/";
	static const char digits[] = "0123456789ABCDEF";
	struct buf uri;
	buf_init(&uri, FAILURE_URI_MAX);
	bool ok = buf_append(&uri, SPAN_LITERAL("file://"), NULL);
	for (size_t i = 0; ok && i < path.len; i++) {
		unsigned char byte = (unsigned char)path.data[i];
		char encoded[] = {'%', digits[byte >> 4], digits[byte & 0xf]};
		bool is_plain = byte != '\0' && strchr(plain, byte);
		ok = buf_append(&uri,
			is_plain ? (struct span){path.data + i, 1} : (struct span){encoded, 3},
			NULL);
	}
	json_write_string(writer, buf_span(&uri));
	buf_finish(&uri);
}

/* ACP version 2, error -32022. */
static void write_versions(struct json_writer *writer, struct span requested)
{
	struct json_doc *doc = json_doc_parse(requested, NULL);
	json_write_member_int(writer, "requested", doc ? json_int(doc, 0, 0) : 0);
	json_write_member_raw(writer, "supported", SPAN_LITERAL("[1]"));
	json_doc_destroy(doc);
}

void failure_write(
	struct buf *out, struct span id, const struct error *err, const struct error_reason *reason)
{
	assert(err->stage);
	const struct failure_code own = {reason ? reason->name : NULL, RPC_INTERNAL_ERROR,
		reason && reason->retryable, reason ? reason->help : NULL};
	const struct failure_code *code = reason ? &own : failure_code_get(failure_code_of(err));
	struct json_writer writer;
	json_write_begin(&writer, out);
	json_write_object(&writer);
	json_write_member(&writer, "jsonrpc", "2.0");
	json_write_member_raw(&writer, "id", id.len > 0 ? id : SPAN_LITERAL("null"));
	json_write_key(&writer, "error");
	json_write_object(&writer);
	json_write_member_int(&writer, "code", code->rpc);
	json_write_member(&writer, "message", err->text);
	json_write_key(&writer, "data");
	json_write_object(&writer);
	json_write_member(&writer, "code", code->name);
	json_write_member_bool(&writer, "retryable", code->retryable);
	json_write_member(&writer, "stage", err->stage);
	if (err->detail.len > 0 && code->rpc == RPC_UNSUPPORTED_VERSION) {
		write_versions(&writer, err->detail);
	} else if (err->detail.len > 0 && code->rpc == RPC_RESOURCE_NOT_FOUND) {
		json_write_key(&writer, "uri");
		write_file_uri(&writer, err->detail);
	} else if (err->detail.len > 0) {
		json_write_member_string(&writer, "detail", err->detail);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	json_write_object_end(&writer);
	bool ok = json_write_end(&writer, NULL);
	assert(ok);
	(void)ok;
}
